/**
 * When a cron expression is due (§4.3). Where its hours are named, it speaks of times of day: one that the clocks skip in
 * spring comes once, at the moment they have moved on; one that they repeat in autumn comes once, the first time. Where the
 * hours are `*` or a step, it speaks of time passing, and comes as often as it passes.
 */
import { Cron } from 'croner'

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
  const cron = new Cron(asTimesOfDay(expression), { timezone, paused: true, fixedTimeRule: 'no-wildcard' })
  return cron.nextRun(new Date(afterMs))?.getTime() ?? null
}

const fieldsOf = (expression: string): string[] => expression.trim().split(/\s+/).filter(Boolean)

/** The library takes an expression for times of day only if its minutes and seconds are named, too: then they are. */
function asTimesOfDay(expression: string): string {
  const fields = fieldsOf(expression)
  const hours = fields.length === 5 ? 1 : 2
  if (/[*?/]/.test(fields[hours] ?? '*')) return expression
  return fields.map((field, index) => (index < hours ? field.split(',').map(named).join(',') : field)).join(' ')
}

const SIXTY = 60

/** A wildcard or step of minutes or seconds as the list it stands for; whatever else as it is, valid or not. */
function named(part: string): string {
  const [, range = '', step = '1'] = /^(\*|\?|\d+-\d+)(?:\/(\d+))?$/.exec(part) ?? []
  if (!range || (range !== '*' && range !== '?' && !part.includes('/'))) return part
  const [first = 0, last = SIXTY - 1] = /\d/.test(range) ? range.split('-').map(Number) : []
  const every = Number(step)
  if (every < 1 || every > SIXTY || last >= SIXTY || first > last) return part
  return Array.from({ length: Math.floor((last - first) / every) + 1 }, (_, index) => first + index * every).join(',')
}
