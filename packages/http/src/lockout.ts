/** Shuts out a client address after too many wrong credentials, for a while. */

import { BoundedMap } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'

export interface LockoutOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** This many failures … */
  readonly failuresMax: number
  /** … within this time … */
  readonly windowMs: number
  /** … shut out for this long. */
  readonly lockMs: number
  /** Addresses remembered; the first one seen is forgotten first. */
  readonly addressesMax?: number
}

export interface Lockout {
  /** Throws `rate_limited` while the address is shut out. */
  check(address: string): void
  fail(address: string): void
  /** Forgets the failures of an address that got it right. */
  clear(address: string): void
}

interface Record {
  /** When the last failures were, oldest first; at most `failuresMax`. */
  readonly failedMs: number[]
  lockedUntilMs: number
}

export function createLockout({ clock, failuresMax, windowMs, lockMs, addressesMax = 10_000 }: LockoutOptions): Lockout {
  const records = new BoundedMap<string, Record>(addressesMax)
  return {
    check(address) {
      const record = records.get(address)
      if (!record) return
      const leftMs = record.lockedUntilMs - clock.monotonicMs()
      if (leftMs > 0) throw new AppError('rate_limited', 'Too many wrong credentials', { retryAfterSecs: Math.ceil(leftMs / 1000) })
    },
    fail(address) {
      const nowMs = clock.monotonicMs()
      const record = records.get(address) ?? { failedMs: [], lockedUntilMs: 0 }
      while (record.failedMs.length > 0 && (record.failedMs[0] ?? 0) <= nowMs - windowMs) record.failedMs.shift()
      record.failedMs.push(nowMs)
      if (record.failedMs.length >= failuresMax) {
        record.failedMs.length = 0
        record.lockedUntilMs = nowMs + lockMs
      }
      records.set(address, record)
    },
    clear: (address) => void records.delete(address),
  }
}
