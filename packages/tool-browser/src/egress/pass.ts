/** The credentials of one client at the egress proxy. They separate clients and exclude other programs on this machine. */
import { randomBytes } from 'node:crypto'
import { equalTexts } from '@sluice/sdk'

const REFUSALS_MAX = 20

export interface Refusal {
  readonly host: string
  readonly reason: string
}

export class Pass {
  readonly username = randomBytes(9).toString('base64url')
  readonly password = randomBytes(24).toString('base64url')
  #refusals: Refusal[] = []
  #uses = 0

  /** The number of requests with this pass, refused ones included. */
  get uses(): number {
    return this.#uses
  }

  /** Whether `authorization` is the `Proxy-Authorization` value of this pass. Takes constant time. */
  matches(authorization: string): boolean {
    return equalTexts(authorization, `Basic ${Buffer.from(`${this.username}:${this.password}`).toString('base64')}`)
  }

  use(): void {
    this.#uses++
  }

  /** Records a refusal unless it is already recorded. Refusals beyond the bound are dropped. */
  refuse(refusal: Refusal): void {
    const isKnown = this.#refusals.some(({ host, reason }) => host === refusal.host && reason === refusal.reason)
    if (!isKnown && this.#refusals.length < REFUSALS_MAX) this.#refusals.push(refusal)
  }

  /** Returns and clears the recorded refusals. */
  takeRefusals(): readonly Refusal[] {
    const taken = this.#refusals
    this.#refusals = []
    return taken
  }
}
