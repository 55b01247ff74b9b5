/** Refuses client addresses that are locked out after too many wrong credentials. */
import { AppError, type Lockout } from '@sluice/sdk'

/** The number of addresses that each lockout remembers. */
export const ADDRESSES_MAX = 10_000

/** Throws `rate_limited` while the address is locked out. */
export async function checkLockout(lockout: Lockout, address: string): Promise<void> {
  const retryAfterSecs = await lockout.leftSecs(address)
  if (retryAfterSecs > 0) throw new AppError('rate_limited', 'Too many wrong credentials', { retryAfterSecs })
}
