import { setTimeout } from 'node:timers/promises'
import type { Clock } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
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
  const own = new CronClock({
    clock,
    log: testHost().log,
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

/** Modules are loaded at first use, which takes real time. */
async function ready(): Promise<void> {
  for (let turns = 0; turns < 5000 && time.sleeping === 0; turns++) await setTimeout(1)
  expect(time.sleeping).toBe(1)
}

async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= MINUTE) {
    await time.advance(Math.min(MINUTE, left))
    await ready()
  }
}

/** What came since the last look: name, minutes since the start, how many were missed. */
function came(): (readonly [string, number, number])[] {
  return seen.splice(0).map(({ sop, instantMs, missed }) => [sop, (instantMs - start) / MINUTE, missed] as const)
}

async function restart(): Promise<void> {
  stop.abort()
  await Promise.all(running.splice(0))
  stop = new AbortController()
}

describe('§4.3 cron triggers', () => {
  test('each instant comes once, at its moment', async () => {
    await run(hourly, quarter)
    await pass(30 * MINUTE)
    expect(came()).toEqual([
      ['quarter', 15, 0],
      ['quarter', 30, 0],
    ])
    await pass(30 * MINUTE)
    expect(came().toSorted()).toEqual([
      ['hourly', 60, 0],
      ['quarter', 45, 0],
      ['quarter', 60, 0],
    ])
    expect(cursor).toBe(start + HOUR)
  })

  test('at the very first start nothing was missed', async () => {
    await run(cron('second', '* * * * * *'))
    expect(came()).toEqual([])
    expect(cursor).toBe(start)
  })

  test('after a stop the newest missed instant comes, and a restart right behind brings nothing', async () => {
    cursor = start - 3 * HOUR
    await run(hourly, quarter)
    expect(came().toSorted()).toEqual([
      ['hourly', 0, 2],
      ['quarter', 0, 11],
    ])
    await restart()
    await run(hourly, quarter)
    expect(came()).toEqual([])
  })

  test('the clock set back by an hour repeats nothing; set forward, each missed trigger comes once', async () => {
    await run(hourly, quarter)
    await pass(HOUR)
    came()
    skewMs = -HOUR
    await pass(HOUR)
    expect(came()).toEqual([])
    await pass(15 * MINUTE)
    expect(came()).toEqual([['quarter', 75, 0]])
    skewMs = 0
    await pass(MINUTE)
    expect(came().toSorted()).toEqual([
      ['hourly', 120, 0],
      ['quarter', 135, 3],
    ])
  })

  test('a restart while the clock is set back repeats nothing either', async () => {
    await run(hourly)
    await pass(HOUR)
    expect(came()).toEqual([['hourly', 60, 0]])
    await restart()
    skewMs = -HOUR
    await run(hourly)
    await pass(HOUR)
    expect(came()).toEqual([])
    await pass(HOUR)
    expect(came()).toEqual([['hourly', 120, 0]])
  })

  test('a cursor that a wrong clock has left years ahead does not hold anything up', async () => {
    cursor = start + 9000 * HOUR
    await run(hourly)
    await pass(HOUR)
    expect(came()).toEqual([['hourly', 60, 0]])
    expect(cursor).toBe(start + HOUR)
  })

  test('a time that the clocks skip or repeat comes once', async () => {
    time = testClock(Date.UTC(2026, 9, 24, 23, 30))
    await run(cron('night', '30 2 * * *', 'Europe/Berlin'))
    await pass(4 * HOUR)
    expect(seen.map(({ instantMs }) => new Date(instantMs).toISOString())).toEqual(['2026-10-25T00:30:00.000Z'])
  })

  test('two triggers of one procedure that fall on one instant bring it once', async () => {
    await run(cron('same', '0 * * * *'), cron('same', '0 13 * * *'), cron('same', '0 * * * *'), cron('other', '0 * * * *'))
    await pass(HOUR)
    expect(came().toSorted()).toEqual([
      ['other', 60, 0],
      ['same', 60, 0],
    ])
  })

  test('what could not be started comes again, and is missed by nobody after a restart', async () => {
    fails = ({ sop }) => sop === 'hourly'
    await run(hourly, quarter)
    await pass(HOUR)
    expect(came().map(([sop]) => sop)).not.toContain('hourly')
    expect(cursor).toBeLessThan(start + HOUR)
    await restart()
    fails = () => false
    await run(hourly, quarter)
    expect(came()).toContainEqual(['hourly', 60, 0])
    expect(cursor).toBe(start + HOUR)
  })

  test('new triggers count from when they are set, known ones go on, others end', async () => {
    const own = await run(hourly, quarter)
    await pass(40 * MINUTE)
    came()
    own.setTriggers([hourly, cron('new', '*/10 * * * *')])
    await pass(20 * MINUTE)
    expect(came().toSorted()).toEqual([
      ['hourly', 60, 0],
      ['new', 50, 0],
      ['new', 60, 0],
    ])
  })

  test('10,000 triggers that are not due cost a look at one of them a minute', async () => {
    await run(...Array.from({ length: 10_000 }, (_, index) => cron(`sop-${index}`, `${index % 60} ${index % 6} * * *`)))
    naps.length = 0
    await pass(5 * MINUTE)
    expect(naps).toEqual(Array(5).fill(MINUTE))
    expect(came()).toEqual([])
  })

  test('what many triggers have missed is counted with a turn for everybody else in between', async () => {
    cursor = start - 2 * HOUR
    let turns = 0
    let isOver = false
    const turn = (): void => {
      turns += 1
      if (!isOver && seen.length === 0) setImmediate(turn)
    }
    setImmediate(turn)
    await run(...Array.from({ length: 20 }, (_, index) => cron(`sop-${index}`, '* * * * *')))
    isOver = true
    expect(came()).toHaveLength(20)
    expect(turns).toBeGreaterThan(15)
  })
})
