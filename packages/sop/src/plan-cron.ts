/** Finds the cron triggers that are due between two instants. Of several missed instants only the newest is due. */
import { type CronSchedule, nextOccurrence } from './cron-expression.ts'

/** A cron trigger of the procedure `sop`. */
export interface CronTrigger extends CronSchedule {
  readonly sop: string
}

/** A trigger with the instant at which it is due. */
export interface CronDue extends CronTrigger {
  readonly instantMs: number
  /** The number of earlier instants since the cursor, which are skipped; counted up to `MISSED_MAX`. */
  readonly missed: number
}

export const MISSED_MAX = 1000

/** Returns the due instant of each trigger that has one after `cursorMs` and not after `nowMs`, in the order of the instants. */
export function planCron<Trigger extends CronTrigger>({
  triggers,
  cursorMs,
  nowMs,
}: {
  readonly triggers: Iterable<Trigger>
  readonly cursorMs: number
  readonly nowMs: number
}): (Trigger & CronDue)[] {
  const due: (Trigger & CronDue)[] = []
  for (const trigger of triggers) {
    const first = nextOccurrence(trigger, cursorMs)
    if (first === null || first > nowMs) continue
    const instantMs = newest(trigger, first, nowMs)
    due.push({ ...trigger, instantMs, missed: countMissed(trigger, first, instantMs) })
  }
  return due.sort((a, b) => a.instantMs - b.instantMs || (a.sop < b.sop ? -1 : 1))
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
