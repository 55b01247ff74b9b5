/** How long to wait before a turn or a send is tried again. */

const FIRST_MS = 5000
const FACTOR = 5
const LONGEST_MS = 30 * 60_000
/** Those who were told the same time to come back do not come back at once. */
const JITTER_MS = 1000

/**
 * After `attempts` failed ones, a random wait up to 5 s, 25 s, 125 s, … ("full jitter"); where the other side named a time,
 * that time and a little more.
 */
export function retryDelayMs(attempts: number, wishedSecs?: number, random: () => number = Math.random): number {
  if (wishedSecs !== undefined) return Math.min(wishedSecs * 1000, LONGEST_MS) + Math.floor(random() * JITTER_MS)
  return Math.floor(random() * Math.min(LONGEST_MS, FIRST_MS * FACTOR ** (attempts - 1)))
}
