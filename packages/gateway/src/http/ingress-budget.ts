/** How many bytes of webhook bodies may be on their way in at once: these routes have no rate limit (§8), so memory needs one. */
import { AppError } from '@sluice/sdk'
import type { HttpContext } from './gate.ts'
import { headersOf } from './headers-of.ts'

export interface IngressBudget {
  /** Takes the room a body may need; returns what gives it back. Throws `unavailable` when there is none. */
  take(c: HttpContext, bodyBytesMax: number): () => void
}

const BYTES_MAX = 64 * 1024 * 1024
const RETRY_AFTER_SECS = 5

export function createIngressBudget(bytesMax = BYTES_MAX): IngressBudget {
  let taken = 0
  return {
    take(c, bodyBytesMax) {
      const declared = headersOf(c).get('content-length')
      const bytes = declared === null ? bodyBytesMax : Number(declared)
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
