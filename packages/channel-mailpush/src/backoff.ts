/** How long to wait before what failed is tried again. */
import { AppError } from '@sluice/sdk'

const FIRST_MS = 1000
const LONGEST_MS = 30_000
/** What a provider may ask for at most; a mailbox is looked at more often than that in any case. */
const ASKED_MS_MAX = 3_600_000

/** `failures`: those before this one. Half of it at least and no more, by chance; never less than the provider asked for. */
export function pauseMs(failures: number, error: unknown): number {
  const grown = Math.min(LONGEST_MS, FIRST_MS * 2 ** failures) * (0.5 + Math.random() / 2)
  return Math.max(grown, askedMs(error))
}

/** How much of that pause no push may cut short: what the provider asked for, and never less than a second. */
export const leastPauseMs = (error: unknown): number => Math.max(FIRST_MS, askedMs(error))

const askedMs = (error: unknown): number => Math.min(ASKED_MS_MAX, error instanceof AppError ? (error.retryAfterSecs ?? 0) * 1000 : 0)
