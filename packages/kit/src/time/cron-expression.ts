/**
 * Computes when a cron expression is due. An expression that names its hours means times of day: a time that the clocks skip in
 * spring is due once, at the moment of the change; a time that they repeat in autumn is due once, the first time. An expression
 * whose hours are `*` or a step means elapsed time, and is due as often as that time passes. The names of crontab(5), such as `@daily`, and
 * a start with a step, such as `7/15`, mean what they mean in cron of Linux, Kubernetes and Quartz.
 */
import { Cron } from 'croner'
import { ZoneTime } from './zone-time.ts'

export interface CronSchedule {
  /** 5 fields; 6 with seconds in front; 7 with seconds in front and the year at the end. */
  readonly expression: string
  /** An IANA time zone name, such as `Europe/Oslo`. */
  readonly timezone: string
}

/** The names of crontab(5). `@reboot` is not a time. */
const NAMES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

/** Returns why an expression is invalid, as the end of a sentence; undefined when it is valid. */
export function expressionProblem(expression: string, nowMs: number): string | undefined {
  const count = fieldsOf(expression).length
  if (count < 5 || count > 7) return `it has ${count} field${count === 1 ? '' : 's'}; a cron expression has 5, 6 or 7`
  try {
    return nextOccurrence({ expression, timezone: 'UTC' }, nowMs) === null ? 'it is never due again' : undefined
  } catch (error) {
    const message = (error as Error).message.replace(/^CronPattern: /, '').replace(/\.$/, '')
    return `${message.charAt(0).toLowerCase()}${message.slice(1)}`
  }
}

/** Returns the first due instant after `afterMs`, or null if none is due. Throws for an invalid schedule. */
export function nextOccurrence({ expression, timezone }: CronSchedule, afterMs: number): number | null {
  // Parsing is quick, and a parsed expression holds a field for each year up to 9999, so nothing is cached.
  if (timezone === 'UTC' || !namesItsHours(expression)) return nextRun(expression, timezone, afterMs)
  const zone = new ZoneTime(timezone)
  // Wall clock times are computed in UTC, where no hour is skipped or repeated.
  const next = nextRun(expression, 'UTC', zone.wallOf(afterMs))
  if (next === null || zone.instantOf(next) > afterMs) return next === null ? null : zone.instantOf(next)
  // The clocks repeat an hour: the schedule goes on with the first time that they have not shown yet.
  const later = nextRun(expression, 'UTC', zone.lastWallBy(afterMs))
  return later === null ? null : zone.instantOf(later)
}

function nextRun(expression: string, timezone: string, afterMs: number): number | null {
  return (
    new Cron(fieldsOf(expression).join(' '), { timezone, paused: true, sloppyRanges: true }).nextRun(new Date(afterMs))?.getTime() ?? null
  )
}

/** A range from a day to the same day is that day; the parser takes it for the whole week. */
const SAME_DAY = /(?<![\w-])(\w{1,9})-\1(?![\w/-])/gi

function fieldsOf(expression: string): string[] {
  const fields = expression.trim().split(/\s+/).filter(Boolean)
  const [name = ''] = fields
  const named = fields.length === 1 ? NAMES[name.toLowerCase()] : undefined
  return named?.split(' ') ?? fields.map((field) => field.replace(SAME_DAY, '$1'))
}

function namesItsHours(expression: string): boolean {
  const fields = fieldsOf(expression)
  return !/[*?/]/.test(fields[fields.length === 5 ? 1 : 2] ?? '*')
}
