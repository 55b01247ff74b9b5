/** Computes when a reminder is due. */
import { type CronSchedule, expressionProblem, nextOccurrence } from '@sluice/kit/cron-expression'
import { isTimezone } from '@sluice/kit/timezone'
import { ZoneTime } from '@sluice/kit/zone-time'
import { AppError } from '@sluice/sdk'

const MINUTE_MS = 60_000
/** The longest time until a reminder is due. */
const AHEAD_MAX_MS = 5 * 366 * 24 * 60 * MINUTE_MS
/** The number of instants whose distances are checked. */
const CHECKED_INSTANTS = 20
const LOCAL_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?$/
const OFFSET = /(?:Z|[+-]\d{2}:\d{2})$/

/** Exactly one of `inMinutes`, `at` and `cron` is given. */
export interface When {
  readonly inMinutes?: number | undefined
  /** An ISO 8601 time with an offset, or a local time in `timezone`. */
  readonly at?: string | undefined
  readonly cron?: string | undefined
  /** An IANA time zone name; needed for a local time and for `cron`. */
  readonly timezone?: string | undefined
}

export interface Due {
  readonly nextMs: number
  /** Absent when it is due once. */
  readonly schedule?: CronSchedule
}

/** Throws `invalid_request` with the cause and the present time. */
export function dueOf({ inMinutes, at, cron, timezone }: When, nowMs: number, minIntervalMs: number): Due {
  if ([inMinutes, at, cron].filter((one) => one !== undefined).length !== 1)
    throw refused('give exactly one of in_minutes, at and cron', nowMs)
  if (timezone !== undefined && !isTimezone(timezone)) throw refused(`'${timezone}' is not an IANA time zone such as Europe/Oslo`, nowMs)
  if (cron !== undefined) {
    if (timezone === undefined) throw refused(`'${cron}' has no time zone: give the timezone of the user`, nowMs)
    return repeated({ expression: cron, timezone }, nowMs, minIntervalMs)
  }
  const nextMs = at === undefined ? nowMs + (inMinutes ?? 0) * MINUTE_MS : instantOf(at, timezone, nowMs)
  if (nextMs <= nowMs) throw refused(`'${at}' is in the past`, nowMs)
  if (nextMs - nowMs > AHEAD_MAX_MS) throw refused('a reminder is due within 5 years', nowMs)
  return { nextMs }
}

function instantOf(at: string, timezone: string | undefined, nowMs: number): number {
  const offset = OFFSET.exec(at)?.[0] ?? ''
  const local = at.slice(0, at.length - offset.length)
  const wallMs = LOCAL_TIME.test(local) ? Date.parse(`${local}Z`) : Number.NaN
  // Date.parse takes 30 February for 2 March.
  if (Number.isNaN(wallMs) || !new Date(wallMs).toISOString().startsWith(local))
    throw refused(`'${at}' is not a time such as 2026-03-01T09:00+01:00`, nowMs)
  if (offset !== '') {
    const instantMs = Date.parse(at)
    if (Number.isNaN(instantMs)) throw refused(`'${at}' has no valid offset`, nowMs)
    return instantMs
  }
  if (timezone === undefined) throw refused(`'${at}' has no offset: add one, such as +01:00, or give the timezone of the user`, nowMs)
  return new ZoneTime(timezone).instantOf(wallMs)
}

function repeated(schedule: CronSchedule, nowMs: number, minIntervalMs: number): Due {
  const problem = expressionProblem(schedule.expression, nowMs)
  if (problem !== undefined) throw refused(`'${schedule.expression}' is not a cron expression: ${problem}`, nowMs)
  const first = nextOccurrence(schedule, nowMs)
  if (first === null) throw refused('it is never due', nowMs)
  let before = first
  for (let checked = 0; checked < CHECKED_INSTANTS; checked++) {
    const next = nextOccurrence(schedule, before)
    if (next === null) break
    if (next - before < minIntervalMs) throw refused(`it is due more often than every ${minIntervalMs / 1000} seconds`, nowMs)
    before = next
  }
  return { nextMs: first, schedule }
}

const refused = (why: string, nowMs: number): AppError =>
  new AppError('invalid_request', `The reminder was not set: ${why}. It is now ${new Date(nowMs).toISOString()}.`)
