/** Finds the newest due instant of a schedule, and counts the missed ones before it. */
import { type CronSchedule, nextOccurrence } from './cron-expression.ts'

export const MISSED_MAX = 1000

export interface DueInstant {
  readonly instantMs: number
  /** The number of earlier instants that are skipped; counted up to `MISSED_MAX`. */
  readonly missed: number
}

/** `firstMs` is the first instant that was not handled; it must not be later than `nowMs`. */
export function dueInstant(schedule: CronSchedule, firstMs: number, nowMs: number): DueInstant {
  const instantMs = newest(schedule, firstMs, nowMs)
  return { instantMs, missed: countMissed(schedule, firstMs, instantMs) }
}

/** Returns the last instant up to `nowMs`. It bisects, because years may lie between the two. */
function newest(schedule: CronSchedule, givenMs: number, nowMs: number): number {
  let found = givenMs
  let beyond = nowMs
  for (let next = nextOccurrence(schedule, found); next !== null && next <= nowMs; next = nextOccurrence(schedule, found)) {
    found = next
    const middle = Math.floor((found + beyond) / 2)
    const later = nextOccurrence(schedule, middle)
    if (later !== null && later <= nowMs) found = later
    else beyond = middle
  }
  return found
}

function countMissed(schedule: CronSchedule, firstMs: number, newestMs: number): number {
  let missed = 0
  for (let at: number | null = firstMs; at !== null && at < newestMs && missed < MISSED_MAX; missed++) at = nextOccurrence(schedule, at)
  return missed
}
