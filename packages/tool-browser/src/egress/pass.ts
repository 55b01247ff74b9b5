/** A pass through the egress proxy: what tells one client's browsing from another's, and keeps others on this machine out. */
import { randomBytes } from 'node:crypto'
import { equalTexts } from '@sluice/sdk'

const REFUSALS_MAX = 20

export interface Refusal {
  readonly host: string
  readonly why: string
}

export class Pass {
  readonly username = randomBytes(9).toString('base64url')
  readonly password = randomBytes(24).toString('base64url')
  #refusals: Refusal[] = []
  #uses = 0

  /** How often something went through it, or was refused. */
  get uses(): number {
    return this.#uses
  }

  /** Whether this is the value of its `Proxy-Authorization`. */
  opens(authorization: string): boolean {
    return equalTexts(authorization, `Basic ${Buffer.from(`${this.username}:${this.password}`).toString('base64')}`)
  }

  use(): void {
    this.#uses++
  }

  /** Remembers it once; what is over the bound is dropped. */
  refuse(refusal: Refusal): void {
    const isKnown = this.#refusals.some(({ host, why }) => host === refusal.host && why === refusal.why)
    if (!isKnown && this.#refusals.length < REFUSALS_MAX) this.#refusals.push(refusal)
  }

  /** What was refused since it was last asked. */
  takeRefusals(): readonly Refusal[] {
    const taken = this.#refusals
    this.#refusals = []
    return taken
  }
}
