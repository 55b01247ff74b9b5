import type { Live } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import type { RateLimiter } from './rate-limiter.ts'

/** Counts a call against an address. Throws `rate_limited` over the limit, and tells the observers so. */
export function limitRate(limiter: RateLimiter, address: string, route: string, live: Pick<Live, 'observe'>): void {
  const retryAfterSecs = limiter.take(address)
  if (retryAfterSecs === 0) return
  live.observe({ kind: 'rate_limited', route })
  throw new AppError('rate_limited', 'Too many requests', { retryAfterSecs })
}
