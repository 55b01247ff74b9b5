/** Locks out a client address for a while after too many wrong credentials. */

import { BoundedMap } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'

export interface LockoutOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The number of failures within `windowMs` that lock an address out. */
  readonly failuresMax: number
  readonly windowMs: number
  /** The duration of a lockout. */
  readonly lockMs: number
  /** The number of addresses that are remembered; the first one seen is forgotten first. Default: 10,000. */
  readonly addressesMax?: number
}

export interface Lockout {
  /** Throws `rate_limited` while the address is locked out. */
  check(address: string): void
  /** Counts a wrong credential. */
  fail(address: string): void
  /** Forgets the failures of an address that sent the right credential. */
  clear(address: string): void
}

interface Failures {
  /** The times of the last failures, oldest first; at most `failuresMax`. */
  readonly timesMs: number[]
  lockedUntilMs: number
}

export function createLockout({ clock, failuresMax, windowMs, lockMs, addressesMax = 10_000 }: LockoutOptions): Lockout {
  const failures = new BoundedMap<string, Failures>(addressesMax)
  return {
    check(address) {
      const known = failures.get(address)
      if (!known) return
      const leftMs = known.lockedUntilMs - clock.monotonicMs()
      if (leftMs > 0) throw new AppError('rate_limited', 'Too many wrong credentials', { retryAfterSecs: Math.ceil(leftMs / 1000) })
    },
    fail(address) {
      const nowMs = clock.monotonicMs()
      const known = failures.get(address) ?? { timesMs: [], lockedUntilMs: 0 }
      while (known.timesMs.length > 0 && (known.timesMs[0] ?? 0) <= nowMs - windowMs) known.timesMs.shift()
      known.timesMs.push(nowMs)
      if (known.timesMs.length >= failuresMax) {
        known.timesMs.length = 0
        known.lockedUntilMs = nowMs + lockMs
      }
      failures.set(address, known)
    },
    clear: (address) => void failures.delete(address),
  }
}
