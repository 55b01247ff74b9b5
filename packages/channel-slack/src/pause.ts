/** How long to wait before what failed is tried again. */
import { AppError } from '@sluice/sdk'

const FIRST_MS = 1000
const LONGEST_MS = 30_000
/** The longest pause that Slack can ask for. */
const ASKED_MS_MAX = 300_000
/** For what only an operator can mend. */
const REFUSED_MS = 600_000

/** Whether Slack refused, so that only a change of the configuration or the app helps. */
export const isRefused = (error: unknown): boolean =>
  error instanceof AppError && (error.code === 'forbidden' || error.code === 'invalid_request')

/** `failures`: those before this one. Half of it at least and no more, by chance; never less than Slack asked for. */
export function pauseMs(failures: number, error: unknown): number {
  if (isRefused(error)) return REFUSED_MS
  const grown = Math.min(LONGEST_MS, FIRST_MS * 2 ** failures) * (0.5 + Math.random() / 2)
  const askedMs = error instanceof AppError ? (error.retryAfterSecs ?? 0) * 1000 : 0
  return Math.max(grown, Math.min(askedMs, ASKED_MS_MAX))
}
