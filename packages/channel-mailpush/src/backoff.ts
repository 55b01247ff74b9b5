/** How long the channel waits before it repeats a failed request to the mail API. */
import { askedDelayMs, backoffMs } from '@sluice/kit'

const FIRST_MS = 1000
const LONGEST_MS = 30_000
/** The longest `Retry-After` that is respected. */
const ASKED_MS_MAX = 3_600_000

/** Returns the delay after `failures` earlier failures and this `error`, and never less than the API asked for. */
export const retryDelayMs = (failures: number, error: unknown): number =>
  Math.max(backoffMs(failures, { firstMs: FIRST_MS, longestMs: LONGEST_MS }), askedDelayMs(error, ASKED_MS_MAX))

/** Returns the part of the delay that a push cannot cut short: the delay the API asked for, and at least a second. */
export const minRetryDelayMs = (error: unknown): number => Math.max(FIRST_MS, askedDelayMs(error, ASKED_MS_MAX))
