import { nextOccurrence } from '@sluice/kit/cron-expression'
import { MISSED_MAX } from '@sluice/kit/due-instant'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { planCron } from './plan-cron.ts'

const HOUR = 3_600_000
const noon = Date.UTC(2026, 2, 1, 12)
const hourly = { sop: 'hourly', expression: '0 * * * *', timezone: 'UTC' }
const daily = { sop: 'daily', expression: '30 9 * * *', timezone: 'UTC' }
const plan = (cursorMs: number, nowMs: number, triggers = [hourly, daily]) =>
  planCron({ triggers, cursorMs, nowMs }).map(({ sop, instantMs, missed }) => [sop, (instantMs - noon) / HOUR, missed])

test('an instant is due after the cursor and up to now', () => {
  expect(plan(noon - 1, noon)).toEqual([['hourly', 0, 0]])
  expect(plan(noon, noon + HOUR - 1)).toEqual([])
  expect(plan(noon, noon + HOUR)).toEqual([['hourly', 1, 0]])
})

test('of missed instants only the newest is due, with the number of the others', () => {
  expect(plan(noon, noon + 48.5 * HOUR)).toEqual([
    ['daily', 45.5, 1],
    ['hourly', 48, 47],
  ])
})

test('a clock set back by an hour repeats no instant', () => {
  expect(plan(noon, noon - HOUR)).toEqual([])
  expect(plan(noon, noon - HOUR + 1)).toEqual([])
  expect(plan(noon, noon)).toEqual([])
})

test('a clock set forward by an hour makes each skipped trigger due once', () => {
  const quarter = { sop: 'quarter', expression: '*/15 * * * *', timezone: 'UTC' }
  expect(plan(noon + 1, noon + HOUR + 1, [hourly, quarter])).toEqual([
    ['hourly', 1, 0],
    ['quarter', 1, 3],
  ])
})

test('ten years of missed instants are found quickly and counted up to a limit', () => {
  const second = { sop: 'second', expression: '* * * * * *', timezone: 'Europe/Berlin' }
  expect(plan(noon - 87_600 * HOUR, noon + 500, [second])).toEqual([['second', 0, MISSED_MAX]])
})

test('planning in pieces reports the same instants as one plan, each once', () => {
  const expressions = fc.constantFrom('*/7 * * * *', '0 9 * * *', '30 2 * * *', '*/20 1-3 * * *', '15 */2 * * *', '0 0 * * 1')
  const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe')
  const hops = fc.array(fc.integer({ min: -2 * HOUR, max: 30 * HOUR }), { maxLength: 12 })
  const from = Date.UTC(2026, 2, 27)
  fc.assert(
    fc.property(expressions, zones, hops, (expression, timezone, steps) => {
      const trigger = { sop: 'a', expression, timezone }
      let cursorMs = from
      let nowMs = from
      let last = from
      for (const hop of steps) {
        nowMs += hop
        for (const { instantMs, missed } of planCron({ triggers: [trigger], cursorMs, nowMs })) {
          let counted = -1
          for (let at: number | null = last; at !== null && at < instantMs; counted++) at = nextOccurrence(trigger, at)
          expect(instantMs).toBeGreaterThan(last)
          expect(instantMs).toBeLessThanOrEqual(nowMs)
          expect(missed).toBe(Math.min(counted, MISSED_MAX))
          last = instantMs
        }
        cursorMs = Math.max(cursorMs, nowMs)
      }
    }),
    { numRuns: 60 },
  )
})
