/** The delay before a turn or a send is tried again. */
import { backoffMs, LONGEST_DELAY_MS } from '@sluice/kit'

/** A random delay of at most 5 s, 25 s, 125 s, … after 1, 2, 3, … failed attempts. */
const FAILED = { firstMs: 5000, longestMs: 30 * 60_000, factor: 5, fixedShare: 0 }

const AWAY_FIRST_MS = 1000
const AWAY_LONGEST_MS = 30_000

/** Spreads the attempts of rows that got the same `Retry-After`. */
const JITTER_MS = 1000
/** The longest `Retry-After` that is respected. */
const ASKED_MS_MAX = LONGEST_DELAY_MS - JITTER_MS

/**
 * The delay after `attempts` failed attempts, the last one included, with full jitter. At least `askedSecs`, the `Retry-After` of the
 * other side, with a little jitter of its own.
 */
export function retryDelayMs(attempts: number, askedSecs = 0, random: () => number = Math.random): number {
  return Math.max(Math.floor(backoffMs(attempts - 1, FAILED, random)), askedMs(askedSecs, random))
}

/**
 * The delay before the model or platform, which was away, is tried again. It grows with the age of the row up to half a minute, so
 * that the work is done soon after the other side is back.
 */
export function awayDelayMs(ageMs: number, askedSecs = 0, random: () => number = Math.random): number {
  const longestMs = Math.min(AWAY_LONGEST_MS, Math.max(AWAY_FIRST_MS, ageMs / 2))
  const delayMs = Math.floor(backoffMs(0, { firstMs: longestMs, longestMs }, random))
  return Math.max(delayMs, askedMs(askedSecs, random))
}

const askedMs = (secs: number, random: () => number): number =>
  secs <= 0 ? 0 : Math.min(secs * 1000, ASKED_MS_MAX) + Math.floor(random() * JITTER_MS)
