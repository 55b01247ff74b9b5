/**
 * When a cron expression is due (§4.3). Where its hours are named, it speaks of times of day: one that the clocks skip in
 * spring comes once, at the moment they have moved on; one that they repeat in autumn comes once, the first time. Where the
 * hours are `*` or a step, it speaks of time passing, and comes as often as it passes.
 */
import { Cron } from 'croner'
import { ZoneTime } from './zone-time.ts'

export interface CronSchedule {
  /** 5 fields, 6 with seconds in front, or 7 with the year behind. */
  readonly expression: string
  /** IANA name. */
  readonly timezone: string
}

/** What is wrong with an expression, as the end of a sentence; undefined: nothing. */
export function expressionProblem(expression: string, nowMs: number): string | undefined {
  const count = fieldsOf(expression).length
  if (count < 5 || count > 7) return `it has ${count} field${count === 1 ? '' : 's'}; a cron expression has 5, 6 or 7`
  try {
    return nextOccurrence({ expression, timezone: 'UTC' }, nowMs) === null ? 'it never comes again' : undefined
  } catch (error) {
    const message = (error as Error).message.replace(/^CronPattern: /, '').replace(/\.$/, '')
    return `${message.charAt(0).toLowerCase()}${message.slice(1)}`
  }
}

export function isTimezone(timezone: string): boolean {
  // Asking takes a while, and most triggers name this one.
  if (timezone === 'UTC') return true
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone })
    return true
  } catch {
    return false
  }
}

/** The first instant after another, both in milliseconds since 1970; null: there is none. Throws for a schedule that is not valid. */
export function nextOccurrence({ expression, timezone }: CronSchedule, afterMs: number): number | null {
  // Parsed each time: that takes microseconds, and a parsed one holds a field for each year to 9999.
  if (timezone === 'UTC' || !namesItsHours(expression)) return nextRun(expression, timezone, afterMs)
  const zone = new ZoneTime(timezone)
  // Wall clock times are handled as if they were in UTC, where no hour is skipped or repeated.
  const next = nextRun(expression, 'UTC', zone.wallOf(afterMs))
  if (next === null || zone.instantOf(next) > afterMs) return next === null ? null : zone.instantOf(next)
  // The clocks show a time for the second time: the schedule goes on with the first one that they have not shown yet.
  const later = nextRun(expression, 'UTC', zone.lastWallBy(afterMs))
  return later === null ? null : zone.instantOf(later)
}

function nextRun(expression: string, timezone: string, afterMs: number): number | null {
  return new Cron(expression, { timezone, paused: true }).nextRun(new Date(afterMs))?.getTime() ?? null
}

const fieldsOf = (expression: string): string[] => expression.trim().split(/\s+/).filter(Boolean)

function namesItsHours(expression: string): boolean {
  const fields = fieldsOf(expression)
  return !/[*?/]/.test(fields[fields.length === 5 ? 1 : 2] ?? '*')
}
