/** Pending challenges: random, bound to the principal that asked for them, valid once and for five minutes, on every node of a cluster. */
import { randomBytes } from 'node:crypto'
import { oneTimeKeys } from '@sluice/kit'
import type { Host, OneTimeKeys } from '@sluice/sdk'

const TTL_MS = 300_000
const CHALLENGE_BYTES = 32

export interface ChallengeLimits {
  /** Beyond the challenges of this number of principals, the oldest are dropped. */
  readonly principalsMax: number
  /** Beyond this number, the principal loses its oldest challenge. */
  readonly perPrincipalMax: number
}

/** The limits for challenges that paired devices ask for. */
export const DEVICE_CHALLENGES: ChallengeLimits = { principalsMax: 64, perPrincipalMax: 16 }

export class Challenges<Purpose> {
  readonly #pending: OneTimeKeys<Purpose>

  /** `ceremony` separates the challenges of different kinds. */
  constructor(host: Pick<Host, 'clock' | 'service'>, ceremony: string, { principalsMax, perPrincipalMax }: ChallengeLimits) {
    const limits = { ttlMs: TTL_MS, perOwnerMax: perPrincipalMax, allMax: principalsMax * perPrincipalMax }
    this.#pending = oneTimeKeys(host, `webauthn ${ceremony}`, limits)
  }

  /** Resolves to a new challenge in base64url. */
  async issue(principal: string, purpose: Purpose): Promise<string> {
    const challenge = randomBytes(CHALLENGE_BYTES).toString('base64url')
    await this.#pending.add(principal, challenge, purpose)
    return challenge
  }

  /** Removes a challenge and resolves to its purpose; to undefined if it is unknown, expired, used or of another principal. */
  take(principal: string, challenge: string): Promise<Purpose | undefined> {
    return this.#pending.take(principal, challenge)
  }
}
