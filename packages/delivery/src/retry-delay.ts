/** How long to wait before a turn or a send is tried again. */
import { LONGEST_DELAY_MS } from '@sluice/kit'

const FIRST_MS = 5000
const FACTOR = 5
const LONGEST_MS = 30 * 60_000
/** Keeps rows that were given the same time from being tried in step. */
const JITTER_MS = 1000
/** The longest `Retry-After` that is kept. */
const WISHED_MS_MAX = LONGEST_DELAY_MS - JITTER_MS

const AWAY_FIRST_MS = 1000
const AWAY_LONGEST_MS = 30_000

/**
 * The wait before work of this age meets the other side again, which was away. It grows with the age up to half a minute, so
 * that the work is done soon after the other side is back.
 */
export function awayDelayMs(ageMs: number, wishedSecs = 0, random: () => number = Math.random): number {
  const longestMs = Math.min(AWAY_LONGEST_MS, Math.max(AWAY_FIRST_MS, ageMs / 2))
  return Math.max(Math.floor(longestMs * (0.5 + random() / 2)), wishedMs(wishedSecs, random))
}

/**
 * After `attempts` failed ones, a random wait up to 5 s, 25 s, 125 s, … ("full jitter"); where the other side named a time,
 * no less than that and a little more.
 */
export function retryDelayMs(attempts: number, wishedSecs = 0, random: () => number = Math.random): number {
  const backoffMs = Math.floor(random() * Math.min(LONGEST_MS, FIRST_MS * FACTOR ** (attempts - 1)))
  return Math.max(backoffMs, wishedMs(wishedSecs, random))
}

const wishedMs = (secs: number, random: () => number): number =>
  secs <= 0 ? 0 : Math.min(secs * 1000, WISHED_MS_MAX) + Math.floor(random() * JITTER_MS)
