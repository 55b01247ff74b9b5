/** When a lease that was lost is taken again. */
import type { Backoff } from '@sluice/kit'

/** Two processes that take leases from each other do it no faster than this. */
export const REACQUIRE: Backoff = { firstMs: 1000, longestMs: 60_000 }
/** After a lease that was held this long, the backoff begins again with its first delay. */
export const STABLE_MS = 60_000

export const hasAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
