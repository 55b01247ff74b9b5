/** How long to wait before what failed is tried again. */
import { AppError } from '@sluice/sdk'
import { isBadToken } from './bot-api.ts'

const FIRST_MS = 1000
const LONGEST_MS = 30_000
/** What anybody may ask for at most. */
const ASKED_MS_MAX = 3_600_000
/** The server lets a poll go on for half a minute after its program has ended. */
const OTHER_POLLER_MS = 35_000
/** Only the operator can help; a new token comes with a new channel. */
const BAD_TOKEN_MS = 600_000

/** `failures`: those before this one. Half of a growing pause at least, the rest by chance; never less than what was asked for. */
export function pauseMs(error: unknown, failures: number): number {
  if (isBadToken(error)) return BAD_TOKEN_MS
  if (error instanceof AppError && error.code === 'conflict') return OTHER_POLLER_MS
  const grown = Math.min(LONGEST_MS, FIRST_MS * 2 ** failures) * (0.5 + Math.random() / 2)
  const asked = error instanceof AppError ? (error.retryAfterSecs ?? 0) * 1000 : 0
  return Math.max(grown, Math.min(ASKED_MS_MAX, asked))
}
