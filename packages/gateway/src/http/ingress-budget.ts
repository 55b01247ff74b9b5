/** How many bytes of webhook bodies may be on their way in at once: these routes have no rate limit (§8), so memory needs one. */
import { AppError } from '@sluice/sdk'

export interface IngressBudget {
  /** Takes room for a body of so many bytes at most; returns what gives it back. Throws `unavailable` when there is none. */
  take(bytes: number): () => void
}

const BYTES_MAX = 64 * 1024 * 1024
const RETRY_AFTER_SECS = 5

export function createIngressBudget(bytesMax = BYTES_MAX): IngressBudget {
  let taken = 0
  return {
    take(bytes) {
      if (taken + bytes > bytesMax) {
        throw new AppError('unavailable', 'Too much is being received at once', { retryAfterSecs: RETRY_AFTER_SECS })
      }
      taken += bytes
      return () => {
        taken -= bytes
      }
    },
  }
}
