/** Pending challenges: random, bound to the principal that asked for them, valid once and for five minutes. */
import { randomBytes } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

const TTL_MS = 300_000
const CHALLENGE_BYTES = 32

export interface ChallengeLimits {
  /** Beyond this number, the oldest principal loses its challenges. */
  readonly principalsMax: number
  /** Beyond this number, the principal loses its oldest challenge. */
  readonly perPrincipalMax: number
}

/** The limits for challenges that paired devices ask for. */
export const DEVICE_CHALLENGES: ChallengeLimits = { principalsMax: 64, perPrincipalMax: 16 }

interface Pending<Purpose> {
  readonly purpose: Purpose
  readonly expiresAtMs: number
}

export class Challenges<Purpose> {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #perPrincipalMax: number
  readonly #pending: BoundedMap<string, BoundedMap<string, Pending<Purpose>>>

  constructor(clock: Pick<Clock, 'monotonicMs'>, { principalsMax, perPrincipalMax }: ChallengeLimits) {
    this.#clock = clock
    this.#perPrincipalMax = perPrincipalMax
    this.#pending = new BoundedMap(principalsMax)
  }

  /** Returns a new challenge in base64url. */
  issue(principal: string, purpose: Purpose): string {
    const own = this.#pending.get(principal) ?? new BoundedMap(this.#perPrincipalMax)
    this.#pending.set(principal, own)
    const challenge = randomBytes(CHALLENGE_BYTES).toString('base64url')
    own.set(challenge, { purpose, expiresAtMs: this.#clock.monotonicMs() + TTL_MS })
    return challenge
  }

  /** Removes a challenge and returns its purpose. Returns undefined if it is unknown, expired, used or of another principal. */
  take(principal: string, challenge: string): Purpose | undefined {
    const own = this.#pending.get(principal)
    const pending = own?.get(challenge)
    if (!own?.delete(challenge) || !pending) return undefined
    if (own.size === 0) this.#pending.delete(principal)
    return this.#clock.monotonicMs() < pending.expiresAtMs ? pending.purpose : undefined
  }
}
