import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expressionProblem, nextOccurrence } from './cron-expression.ts'
import { isTimezone } from './timezone.ts'
import { ZoneTime } from './zone-time.ts'

/** Returns the next instants after `after`, in ISO form in UTC. */
function instants(expression: string, timezone: string, after: string, count: number): string[] {
  let at: number | null = Date.parse(after)
  return Array.from({ length: count }, () => {
    at = at === null ? null : nextOccurrence({ expression, timezone }, at)
    return at === null ? 'none' : new Date(at).toISOString().slice(0, 19)
  })
}

describe('cron expressions', () => {
  test.each<[string, string, string[]]>([
    ['0 9 * * *', '2026-03-01T09:00:00Z', ['2026-03-02T09:00:00', '2026-03-03T09:00:00']],
    ['*/15 * * * *', '2026-03-01T08:59:59.999Z', ['2026-03-01T09:00:00', '2026-03-01T09:15:00']],
    ['30 0 9 * * *', '2026-03-01T09:00:00Z', ['2026-03-01T09:00:30', '2026-03-02T09:00:30']],
    ['0 0 0 29 2 * 2028', '2026-03-01T00:00:00Z', ['2028-02-29T00:00:00', 'none']],
    ['0 0 * * 0', '2026-03-02T00:00:00Z', ['2026-03-08T00:00:00', '2026-03-15T00:00:00']],
    ['0 0 * * 7', '2026-03-02T00:00:00Z', ['2026-03-08T00:00:00', '2026-03-15T00:00:00']],
    ['0 12 * * MON-FRI', '2026-03-06T12:00:00Z', ['2026-03-09T12:00:00', '2026-03-10T12:00:00']],
    ['* 9 * * *', '2026-03-01T09:58:00Z', ['2026-03-01T09:59:00', '2026-03-02T09:00:00']],
    ['10-50/20,5 9 * * *', '2026-03-01T00:00:00Z', ['2026-03-01T09:05:00', '2026-03-01T09:10:00', '2026-03-01T09:30:00']],
    ['0/20 * * * *', '2026-03-01T09:01:00Z', ['2026-03-01T09:20:00', '2026-03-01T09:40:00', '2026-03-01T10:00:00']],
    ['7/15 * * * *', '2026-03-01T09:01:00Z', ['2026-03-01T09:07:00', '2026-03-01T09:22:00', '2026-03-01T09:37:00', '2026-03-01T09:52:00']],
    ['0 2/6 * * *', '2026-03-01T10:00:00Z', ['2026-03-01T14:00:00', '2026-03-01T20:00:00', '2026-03-02T02:00:00']],
    ['0 0 1/2 * *', '2026-03-29T10:00:00Z', ['2026-03-31T00:00:00', '2026-04-01T00:00:00']],
    ['@yearly', '2026-03-01T00:00:00Z', ['2027-01-01T00:00:00']],
    ['@monthly', '2026-03-01T00:00:00Z', ['2026-04-01T00:00:00']],
    ['@weekly', '2026-03-02T00:00:00Z', ['2026-03-08T00:00:00', '2026-03-15T00:00:00']],
    [' @Daily ', '2026-03-01T10:00:00Z', ['2026-03-02T00:00:00', '2026-03-03T00:00:00']],
    ['@hourly', '2026-03-01T10:01:00Z', ['2026-03-01T11:00:00', '2026-03-01T12:00:00']],
    ['0 9 * * Sun-Sun', '2026-03-01T10:00:00Z', ['2026-03-08T09:00:00', '2026-03-15T09:00:00']],
    ['0 9 * * 1-1,3', '2026-03-01T10:00:00Z', ['2026-03-02T09:00:00', '2026-03-04T09:00:00', '2026-03-09T09:00:00']],
    ['* * * * * *', '2026-03-01T09:58:00.400Z', ['2026-03-01T09:58:01', '2026-03-01T09:58:02']],
  ])('are due as their fields say: %s after %s', (expression, after, expected) => {
    expect(expressionProblem(expression, Date.parse(after))).toBeUndefined()
    expect(instants(expression, 'UTC', after, expected.length)).toEqual(expected)
  })

  test.each([
    ['', 'it has 0 fields; a cron expression has 5, 6 or 7'],
    ['@reboot', 'it has 1 field; a cron expression has 5, 6 or 7'],
    ['@daily 5', 'it has 2 fields; a cron expression has 5, 6 or 7'],
    ['2026-01-01T00:00:00', 'it has 1 field; a cron expression has 5, 6 or 7'],
    ['* * * *', 'it has 4 fields; a cron expression has 5, 6 or 7'],
    ['* * * * * * * *', 'it has 8 fields; a cron expression has 5, 6 or 7'],
    ['61 * * * *', 'invalid value for minute: 61'],
    ['0 25 * * *', 'invalid value for hour: 25'],
    ['0/70 9 * * *', expect.any(String)],
    ['*/0 9 * * *', expect.any(String)],
    ['a b c d e', expect.stringContaining('illegal characters')],
    ['0 0 30 2 *', 'it is never due again'],
    ['0 0 0 1 1 * 2020', 'it is never due again'],
  ])('are refused with a reason when invalid: %j', (expression, problem) => {
    expect(expressionProblem(expression, Date.UTC(2026, 2, 1))).toEqual(problem)
  })

  test.each([
    ['UTC', true],
    ['Europe/Berlin', true],
    ['Europe/Berlim', false],
    ['', false],
  ])('know a time zone or not: %j', (timezone, known) => {
    expect(isTimezone(timezone)).toBe(known)
  })
})

describe('daylight saving', () => {
  test.each<[string, string, string, string, string[]]>([
    // The clocks go from 02:00 to 03:00 on 29 March, and from 03:00 to 02:00 on 25 October.
    ['a skipped time is due once, right after the gap', '30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['29 01:00', '30 00:30']],
    ['a repeated time is due once, the first time', '30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', ['25 00:30', '26 01:30']],
    ['several skipped times are due once', '0,30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['29 01:00', '30 00:00', '30 00:30']],
    ['skipped times of a step are due once', '*/30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['29 01:00', '30 00:00', '30 00:30']],
    ['a repeated step is due once', '*/30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', ['25 00:00', '25 00:30', '26 01:00']],
    ['a skipped time and the next one', '30 2,3 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['29 01:00', '29 01:30', '30 00:30']],
    ['the moment of the change is due once', '0 3 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['29 01:00', '30 01:00']],
    ['a skipped time that coincides with another', '0 2,3 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['29 01:00', '30 00:00']],
    ['elapsed time has no gap', '*/30 * * * *', 'Europe/Berlin', '2026-03-29T00:20Z', ['29 00:30', '29 01:00', '29 01:30']],
    ['elapsed time has no repeat', '0 * * * *', 'Europe/Berlin', '2026-10-24T23:30Z', ['25 00:00', '25 01:00', '25 02:00']],
    // From 02:00 to 03:00 on 8 March, from 02:00 to 01:00 on 1 November.
    ['a skipped time is due once', '30 2 * * *', 'America/New_York', '2026-03-07T12:00Z', ['08 07:00', '09 06:30']],
    ['a repeated time is due once', '30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', ['01 05:30', '02 06:30']],
    ['with seconds and a year', '15 30 2 * * * 2026', 'America/New_York', '2026-03-07T12:00Z', ['08 07:00', '09 06:30']],
    // By half an hour: from 02:00 to 02:30 on 4 October, from 02:00 to 01:30 on 5 April.
    ['a skipped time is due once', '15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', ['03 15:30', '04 15:15']],
    ['a repeated time is due once', '45 1 * * *', 'Australia/Lord_Howe', '2026-04-03T20:00Z', ['04 14:45', '05 15:15']],
    ['an hourly schedule omits a skipped hour', '0 * * * *', 'Australia/Lord_Howe', '2026-10-03T14:00Z', ['03 14:30', '03 16:00']],
    // From 23:00 on 28 March to midnight, and from midnight on 25 October to 23:00 on the day before.
    ['a time skipped up to midnight is due once', '30 23 * * *', 'America/Nuuk', '2026-03-27T12:00Z', ['28 01:30', '29 01:00', '30 00:30']],
    ['a skipped time on a named day', '30 23 28 3 *', 'America/Nuuk', '2026-03-27T12:00Z', ['29 01:00', '29 00:30']],
    ['skipped times on a named weekday', '0,30 23 * * 6', 'America/Nuuk', '2026-03-27T12:00Z', ['29 01:00', '05 00:00', '05 00:30']],
    ['a time repeated before midnight is due once', '30 23 * * *', 'America/Nuuk', '2026-10-24T12:00Z', ['25 00:30', '26 01:30']],
    ['UTC has no change', '30 2 * * *', 'UTC', '2026-03-28T12:00Z', ['29 02:30', '30 02:30']],
  ])('%s: %s in %s', (_, expression, timezone, after, expected) => {
    const found = instants(expression, timezone, after.replace('Z', ':00Z'), expected.length)
    expect(found.map((text) => text.slice(8, 16).replace('T', ' '))).toEqual(expected)
  })

  const ZONES = Intl.supportedValuesOf('timeZone')
  const START = Date.UTC(2026, 0, 1)
  const HALF_HOUR_MS = 1_800_000
  const WEEK_MS = 7 * 48 * HALF_HOUR_MS

  const WEEKS = Array.from({ length: 53 }, (_, week) => START + week * WEEK_MS)
  const offsetAt = (zone: ZoneTime, at: number) => zone.wallOf(at) - at

  /** Returns the instants at which the clocks of a zone change within a year. */
  const changes = (zone: ZoneTime): number[] =>
    // Finds the week first and then the half hour in it, because reading the time of a zone is slow.
    WEEKS.filter((week) => offsetAt(zone, week) !== offsetAt(zone, week + WEEK_MS)).flatMap((week) => {
      const halves = Array.from({ length: WEEK_MS / HALF_HOUR_MS }, (_, half) => week + (half + 1) * HALF_HOUR_MS)
      return halves.filter((at) => offsetAt(zone, at - HALF_HOUR_MS) !== offsetAt(zone, at))
    })

  test('in every zone, around every change, a time of day is due once a day', () => {
    const seen = new Set<string>()
    let count = 0
    for (const timezone of ZONES) {
      const zone = new ZoneTime(timezone)
      // Zones with the same offsets all year are tested once.
      const year = WEEKS.map((week) => offsetAt(zone, week)).join()
      if (seen.has(year)) continue
      seen.add(year)
      for (const change of changes(zone)) {
        count++
        const [first, last] = [change - 2 * 48 * HALF_HOUR_MS, change + 2 * 48 * HALF_HOUR_MS]
        const nearest = Math.round(zone.wallOf(change) / HALF_HOUR_MS) % 48
        for (const half of Array.from({ length: 9 }, (_, index) => (nearest + 43 + index) % 48)) {
          const expression = `${(half % 2) * 30} ${Math.floor(half / 2)} * * *`
          const found: number[] = []
          for (let at: number | null = first; at !== null && at < last; at = nextOccurrence({ expression, timezone }, at)) found.push(at)
          const days = found.slice(1).map((at) => {
            const wall = zone.wallOf(at)
            const isShown = wall % (48 * HALF_HOUR_MS) === half * HALF_HOUR_MS
            expect(isShown || at === change, `${expression} in ${timezone} at ${new Date(at).toISOString()}`).toBe(true)
            // A skipped time belongs to the day that should have shown it.
            return isShown ? Math.floor(wall / (48 * HALF_HOUR_MS)) : Math.floor((zone.wallOf(at - 1000) + 1000) / (48 * HALF_HOUR_MS))
          })
          expect(new Set(days).size, `${expression} in ${timezone} is due once a day`).toBe(days.length)
          expect(days.at(-1), `${expression} in ${timezone} omits no day`).toBe((days[0] ?? 0) + days.length - 1)
        }
      }
    }
    expect(count).toBeGreaterThan(20)
  })

  test('an interval of elapsed time neither stops nor doubles at a change', () => {
    for (const timezone of [
      'America/Nuuk',
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'Africa/Cairo',
      'America/Santiago',
    ]) {
      const zone = new ZoneTime(timezone)
      for (const change of changes(zone)) {
        let at = change - 12 * HALF_HOUR_MS
        for (let step = 0; step < 24; step++) {
          const next = nextOccurrence({ expression: '*/30 * * * *', timezone }, at) ?? Number.NaN
          expect(next - at, `${timezone} at ${new Date(at).toISOString()}`).toBe(HALF_HOUR_MS)
          at = next
        }
      }
    }
  })

  test('a time of day is due once on every day of the year', () => {
    const zones = fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'UTC')
    const start = Date.UTC(2026, 0, 1, 12)
    fc.assert(
      fc.property(zones, fc.nat(59), fc.nat(23), (timezone, minute, hour) => {
        const day = new Intl.DateTimeFormat('en-CA', { timeZone: timezone, dateStyle: 'short' })
        const days: string[] = []
        for (let at = start; days.length < 365; ) {
          at = nextOccurrence({ expression: `${minute} ${hour} * * *`, timezone }, at) ?? Number.NaN
          days.push(day.format(at))
        }
        expect(new Set(days).size).toBe(365)
      }),
      { numRuns: 10 },
    )
  })
})
