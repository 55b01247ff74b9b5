/** How long to wait before what failed is tried again. */
import { AppError } from '@sluice/sdk'

const FIRST_MS = 1000
const LONGEST_MS = 300_000
/** What a provider may ask for at most; a mailbox is looked at more often than that in any case. */
const ASKED_MS_MAX = 3_600_000

/** `failures`: those before this one. Half of it at least and no more, by chance; never less than the provider asked for. */
export function pauseMs(failures: number, error: unknown): number {
  const grown = Math.min(LONGEST_MS, FIRST_MS * 2 ** failures) * (0.5 + Math.random() / 2)
  const asked = error instanceof AppError ? (error.retryAfterSecs ?? 0) * 1000 : 0
  return Math.max(grown, Math.min(asked, ASKED_MS_MAX))
}
