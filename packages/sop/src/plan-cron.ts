/** Which cron triggers are due between two moments (§4.3): of what was missed only the newest, and nothing twice. */
import { type CronSchedule, nextOccurrence } from './cron-expression.ts'

export interface CronTrigger extends CronSchedule {
  readonly sop: string
}

export interface CronDue extends CronTrigger {
  readonly instantMs: number
  /** Earlier instants since the cursor, which are left out; counted up to `MISSED_MAX`. */
  readonly missed: number
}

export const MISSED_MAX = 1000

/** The due instant of each trigger, if it has one after the cursor and not after now; in the order of the instants. */
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

/** The last instant up to now, given one: a search by halves, since years may lie between. */
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
