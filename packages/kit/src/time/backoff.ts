/** The delay before something that failed is tried again. */
import { AppError } from '@sluice/sdk'

export interface Backoff {
  readonly firstMs: number
  readonly longestMs: number
  /** The growth from one delay to the next; 2 unless given. */
  readonly factor?: number
  /** The part of each delay that is not random, from 0 ("full jitter") to 1; one half unless given. */
  readonly fixedShare?: number
}

/** Returns milliseconds that grow exponentially with `failures`, the failures before this one, up to `longestMs`. Jitter keeps clients from retrying in step. */
export function backoffMs(failures: number, backoff: Backoff, random: () => number = Math.random): number {
  const { firstMs, longestMs, factor = 2, fixedShare = 0.5 } = backoff
  const grownMs = Math.min(longestMs, firstMs * factor ** failures)
  return grownMs * (fixedShare + (1 - fixedShare) * random())
}

/** The delay a server asked for with `Retry-After`, in milliseconds and at most `longestMs`; 0 when `error` names none. */
export function askedDelayMs(error: unknown, longestMs: number): number {
  return error instanceof AppError ? Math.min(longestMs, (error.retryAfterSecs ?? 0) * 1000) : 0
}
