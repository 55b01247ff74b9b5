/** How many bytes of webhook bodies may be in memory at once: these routes have no rate limit (§8), so memory needs one. */
import { AppError } from '@sluice/sdk'

/** The room of one body. */
export interface BodyRoom {
  /** Takes room for bytes as they arrive. Throws `unavailable` when there is none. */
  take(bytes: number): void
  /** Gives all of it back. */
  release(): void
}

export interface IngressBudget {
  open(): BodyRoom
}

const BYTES_MAX = 256 * 1024 * 1024
const RETRY_AFTER_SECS = 5

/** Only what has arrived counts: what is announced costs a stranger nothing. */
export function createIngressBudget(bytesMax = BYTES_MAX): IngressBudget {
  let taken = 0
  return {
    open() {
      let own = 0
      return {
        take(bytes) {
          if (taken + bytes > bytesMax) {
            throw new AppError('unavailable', 'Too much is being received at once', { retryAfterSecs: RETRY_AFTER_SECS })
          }
          taken += bytes
          own += bytes
        },
        release() {
          taken -= own
          own = 0
        },
      }
    },
  }
}
