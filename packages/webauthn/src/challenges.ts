/** Challenges that wait for their answer: random, bound to who asked, good once and for five minutes. */
import { randomBytes } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

const TTL_MS = 300_000
const CHALLENGE_BYTES = 32

export interface Challenges<Purpose> {
  /** A new challenge, in base64url. The oldest one of this principal goes where there are too many. */
  issue(principal: string, purpose: Purpose): string
  /** What the challenge was for. `undefined` if it is unknown, expired, another principal's, or was taken before. */
  take(principal: string, challenge: string): Purpose | undefined
}

export interface ChallengesOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Who asked first is forgotten first. */
  readonly principalsMax: number
  readonly perPrincipalMax: number
}

interface Pending<Purpose> {
  readonly purpose: Purpose
  readonly expiresAtMs: number
}

export function createChallenges<Purpose>({ clock, principalsMax, perPrincipalMax }: ChallengesOptions): Challenges<Purpose> {
  const waiting = new BoundedMap<string, BoundedMap<string, Pending<Purpose>>>(principalsMax)
  return {
    issue(principal, purpose) {
      const own = waiting.get(principal) ?? new BoundedMap(perPrincipalMax)
      waiting.set(principal, own)
      const challenge = randomBytes(CHALLENGE_BYTES).toString('base64url')
      own.set(challenge, { purpose, expiresAtMs: clock.monotonicMs() + TTL_MS })
      return challenge
    },
    take(principal, challenge) {
      const own = waiting.get(principal)
      const pending = own?.get(challenge)
      if (!own?.delete(challenge) || !pending) return undefined
      if (own.size === 0) waiting.delete(principal)
      return clock.monotonicMs() < pending.expiresAtMs ? pending.purpose : undefined
    },
  }
}
