import type { Clock } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { until } from '@sluice/testkit/until'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CronClock } from './cron-clock.ts'
import type { CronDue } from './plan-cron.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const start = Date.UTC(2026, 2, 1, 12)

let time: TestClock
let skewMs: number
let cursor: number | undefined
let seen: CronDue[]
let fails: (due: CronDue) => boolean
let stop: AbortController
let running: Promise<void>[]
let naps: number[]

beforeEach(() => {
  time = testClock(start)
  skewMs = 0
  cursor = undefined
  seen = []
  fails = () => false
  stop = new AbortController()
  running = []
  naps = []
})
afterEach(async () => {
  stop.abort()
  await Promise.all(running)
})

const clock: Clock = {
  nowMs: () => time.nowMs() + skewMs,
  monotonicMs: () => time.monotonicMs(),
  sleep: (ms, signal) => {
    naps.push(ms)
    return time.sleep(ms, signal)
  },
}

const cron = (sop: string, expression: string, timezone = 'UTC') => ({ sop, expression, timezone })
const hourly = cron('hourly', '0 * * * *')
const quarter = cron('quarter', '*/15 * * * *')

async function run(...triggers: ReturnType<typeof cron>[]): Promise<CronClock> {
  const own = new CronClock(clock, testHost().log, {
    load: async () => cursor,
    save: async (ms) => {
      cursor = ms
    },
    due: async (due) => {
      if (fails(due)) throw new Error('the disk is full')
      seen.push(due)
    },
  })
  own.setTriggers(triggers)
  running.push(own.run(stop.signal))
  await ready()
  return own
}

/** Modules are imported at first use, which takes real time. */
const ready = (): Promise<void> => until(() => time.sleeping === 1)

async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= MINUTE) {
    await time.advance(Math.min(MINUTE, left))
    await ready()
  }
}

/** Returns and forgets the reports so far: procedure, minutes since the start, missed instants. */
function takeReports(): (readonly [string, number, number])[] {
  return seen.splice(0).map(({ sop, instantMs, missed }) => [sop, (instantMs - start) / MINUTE, missed] as const)
}

async function restart(): Promise<void> {
  stop.abort()
  await Promise.all(running.splice(0))
  stop = new AbortController()
}

describe('CronClock', () => {
  test('reports each instant once, when it is due', async () => {
    await run(hourly, quarter)
    await pass(30 * MINUTE)
    expect(takeReports()).toEqual([
      ['quarter', 15, 0],
      ['quarter', 30, 0],
    ])
    await pass(30 * MINUTE)
    expect(takeReports().toSorted()).toEqual([
      ['hourly', 60, 0],
      ['quarter', 45, 0],
      ['quarter', 60, 0],
    ])
    expect(cursor).toBe(start + HOUR)
  })

  test('reports nothing missed at the very first start', async () => {
    await run(cron('second', '* * * * * *'))
    expect(takeReports()).toEqual([])
    expect(cursor).toBe(start)
  })

  test('reports the newest missed instant after a stop, and nothing after a second one', async () => {
    cursor = start - 3 * HOUR
    await run(hourly, quarter)
    expect(takeReports().toSorted()).toEqual([
      ['hourly', 0, 2],
      ['quarter', 0, 11],
    ])
    await restart()
    await run(hourly, quarter)
    expect(takeReports()).toEqual([])
  })

  test('repeats nothing when the clock is set back, and skips ahead when set forward', async () => {
    await run(hourly, quarter)
    await pass(HOUR)
    takeReports()
    skewMs = -HOUR
    await pass(HOUR)
    expect(takeReports()).toEqual([])
    await pass(15 * MINUTE)
    expect(takeReports()).toEqual([['quarter', 75, 0]])
    skewMs = 0
    await pass(MINUTE)
    expect(takeReports().toSorted()).toEqual([
      ['hourly', 120, 0],
      ['quarter', 135, 3],
    ])
  })

  test('repeats nothing after a restart while the clock is set back', async () => {
    await run(hourly)
    await pass(HOUR)
    expect(takeReports()).toEqual([['hourly', 60, 0]])
    await restart()
    skewMs = -HOUR
    await run(hourly)
    await pass(HOUR)
    expect(takeReports()).toEqual([])
    await pass(HOUR)
    expect(takeReports()).toEqual([['hourly', 120, 0]])
  })

  test('resets a cursor that a wrong clock has left years ahead', async () => {
    cursor = start + 9000 * HOUR
    await run(hourly)
    await pass(HOUR)
    expect(takeReports()).toEqual([['hourly', 60, 0]])
    expect(cursor).toBe(start + HOUR)
  })

  test('reports a repeated time of day once', async () => {
    time = testClock(Date.UTC(2026, 9, 24, 23, 30))
    await run(cron('night', '30 2 * * *', 'Europe/Berlin'))
    await pass(4 * HOUR)
    expect(seen.map(({ instantMs }) => new Date(instantMs).toISOString())).toEqual(['2026-10-25T00:30:00.000Z'])
  })

  test('reports an instant once that two triggers of one procedure name', async () => {
    await run(cron('same', '0 * * * *'), cron('same', '0 13 * * *'), cron('same', '0 * * * *'), cron('other', '0 * * * *'))
    await pass(HOUR)
    expect(takeReports().toSorted()).toEqual([
      ['other', 60, 0],
      ['same', 60, 0],
    ])
  })

  test('reports an instant again after a failure, also after a restart', async () => {
    fails = ({ sop }) => sop === 'hourly'
    await run(hourly, quarter)
    await pass(HOUR)
    expect(takeReports().map(([sop]) => sop)).not.toContain('hourly')
    expect(cursor).toBeLessThan(start + HOUR)
    await restart()
    fails = () => false
    await run(hourly, quarter)
    expect(takeReports()).toContainEqual(['hourly', 60, 0])
    expect(cursor).toBe(start + HOUR)
  })

  test('starts new triggers from now, keeps known ones, drops the others', async () => {
    const own = await run(hourly, quarter)
    await pass(40 * MINUTE)
    takeReports()
    own.setTriggers([hourly, cron('new', '*/10 * * * *')])
    await pass(20 * MINUTE)
    expect(takeReports().toSorted()).toEqual([
      ['hourly', 60, 0],
      ['new', 50, 0],
      ['new', 60, 0],
    ])
  })

  test('wakes once a minute for 10,000 triggers that are not due', async () => {
    await run(...Array.from({ length: 10_000 }, (_, index) => cron(`sop-${index}`, `${index % 60} ${index % 6} * * *`)))
    naps.length = 0
    await pass(5 * MINUTE)
    expect(naps).toEqual(Array(5).fill(MINUTE))
    expect(takeReports()).toEqual([])
  })

  test('counts the missed instants of many triggers without blocking the event loop', async () => {
    cursor = start - 2 * HOUR
    let ticks = 0
    let isOver = false
    const tick = (): void => {
      ticks += 1
      if (!isOver && seen.length === 0) setImmediate(tick)
    }
    setImmediate(tick)
    await run(...Array.from({ length: 20 }, (_, index) => cron(`sop-${index}`, '* * * * *')))
    isOver = true
    expect(takeReports()).toHaveLength(20)
    expect(ticks).toBeGreaterThan(15)
  })
})
