/** Finds the cron triggers that are due between two instants. Of several missed instants only the newest is due. */
import { type CronSchedule, nextOccurrence } from '@sluice/kit/cron-expression'
import { dueInstant } from '@sluice/kit/due-instant'

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
    due.push({ ...trigger, ...dueInstant(trigger, first, nowMs) })
  }
  return due.sort((a, b) => a.instantMs - b.instantMs || (a.sop < b.sop ? -1 : 1))
}
