import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { WorkLanes, type WorkOutcome, type WorkSlot } from './work-lanes.ts'

const DAY_MS = 24 * 3_600_000

/** Lanes whose work a test ends by hand. */
function bench({ concurrency = 2 } = {}) {
  const passing = testClock()
  let setMs = 0
  const clock = { ...passing, nowMs: () => passing.nowMs() + setMs }
  const setClock = (ms: number) => {
    setMs = ms
  }
  const { log, logs } = testHost()
  const started: number[] = []
  const open = new Map<number, PromiseWithResolvers<WorkOutcome>>()
  const slots = new Map<number, WorkSlot>()
  const left: string[] = []
  const lanes = new WorkLanes({
    clock,
    log,
    concurrency: () => concurrency,
    work(number, _row, slot) {
      started.push(number)
      slots.set(number, slot)
      const work = Promise.withResolvers<WorkOutcome>()
      open.set(number, work)
      return work.promise
    },
    onDone: ({ account }) => void left.push(account),
  })
  const enter = (number: number, lane: string, { atMs = 0, cuts = 0 } = {}) =>
    lanes.enter({ number, channel: 'x', account: `a${number}`, lane, atMs, cuts })
  const end = async (number: number, outcome: WorkOutcome | Error = 'done') => {
    const work = open.get(number)
    if (outcome instanceof Error) work?.reject(outcome)
    else work?.resolve(outcome)
    await settle()
  }
  const leave = (number: number) => slots.get(number)?.leave()
  /** Whether the row has its place again is in `back`. */
  const back: number[] = []
  const retake = async (number: number) => {
    void slots
      .get(number)
      ?.retake()
      .then(() => back.push(number))
    await settle()
  }
  const isFollowed = (number: number) => slots.get(number)?.followed.aborted
  return { lanes, clock, setClock, logs, started, left, back, enter, end, leave, retake, isFollowed }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('work lanes', () => {
  test('a row is told as soon as another one waits behind it in its lane, in no other', async () => {
    const { enter, end, isFollowed } = bench()
    enter(1, 'a')
    enter(2, 'b')
    enter(3, 'c')
    enter(4, 'c')
    expect([1, 2].map(isFollowed)).toEqual([false, false])
    enter(5, 'a')
    expect([1, 2].map(isFollowed)).toEqual([true, false])
    await end(2)
    // It waited already when that one began
    expect(isFollowed(3)).toBe(true)
    await end(1)
    expect(isFollowed(5)).toBe(false)
  })

  test('rows of one lane run one after another, in the order they came', async () => {
    const { started, enter, end } = bench()
    for (const number of [1, 2, 3]) enter(number, 'a')
    expect(started).toEqual([1])
    await end(1)
    expect(started).toEqual([1, 2])
    await end(2)
    expect(started).toEqual([1, 2, 3])
  })

  test('lanes run side by side up to the bound, first ready first served', async () => {
    const { started, lanes, enter, end } = bench({ concurrency: 2 })
    enter(1, 'a')
    enter(2, 'b')
    enter(3, 'c')
    enter(4, 'a')
    expect(started).toEqual([1, 2])
    expect(lanes.load).toEqual({ running: 2, waiting: 2 })
    await end(1)
    await end(2)
    expect(started).toEqual([1, 2, 3, 4])
  })

  test('a row that is here is not taken twice, and may come again once it has left', async () => {
    const { started, enter, end } = bench()
    expect(enter(1, 'a')).toBe(true)
    expect(enter(1, 'a')).toBe(false)
    await end(1)
    expect(enter(1, 'a')).toBe(true)
    expect(started).toEqual([1, 1])
  })

  test('a row that failed holds up its own lane until its time, and no other', async () => {
    const { started, clock, enter, end } = bench({ concurrency: 1 })
    enter(1, 'a')
    enter(2, 'a')
    enter(3, 'b')
    await end(1, { retryAtMs: clock.nowMs() + 5000 })
    await end(3)
    expect(started).toEqual([1, 3])
    await clock.advance(4999)
    expect(started).toEqual([1, 3])
    await clock.advance(1)
    expect(started).toEqual([1, 3, 1])
    await end(1)
    expect(started).toEqual([1, 3, 1, 2])
  })

  test('a row that is not due yet waits', async () => {
    const { started, clock, enter } = bench()
    enter(1, 'a', { atMs: clock.nowMs() + 1000 })
    expect(started).toEqual([])
    await clock.advance(1000)
    expect(started).toEqual([1])
  })

  test('a row whose time is further away than any wait may be is of before the clock was set back, and waits for nothing', () => {
    const { started, clock, enter } = bench()
    enter(1, 'a', { atMs: clock.nowMs() + 2 * DAY_MS })
    expect(started).toEqual([1])
  })

  test('a row that waits starts within a minute of the clock being set to its time', async () => {
    const { started, clock, setClock, enter } = bench()
    enter(1, 'a', { atMs: clock.nowMs() + DAY_MS })
    setClock(DAY_MS)
    expect(started).toEqual([])
    await clock.advance(60_000)
    expect(started).toEqual([1])
  })

  test('a row that waits starts in its time although the clock was set back meanwhile', async () => {
    const { started, clock, setClock, enter } = bench()
    enter(1, 'a', { atMs: clock.nowMs() + 90_000 })
    setClock(-DAY_MS)
    await clock.advance(89_999)
    expect(started).toEqual([])
    await clock.advance(1)
    expect(started).toEqual([1])
  })

  test('a rejection is logged, and the row is tried again a little later', async () => {
    const { started, clock, logs, enter, end } = bench()
    enter(1, 'a')
    await end(1, new Error('the disk is full'))
    expect(logs).toMatchObject([{ level: 'error', fields: { number: 1 } }])
    await clock.advance(5000)
    expect(started).toEqual([1, 1])
  })

  test('whoever counts is told once of each row that leaves', async () => {
    const { left, clock, enter, end } = bench()
    enter(1, 'a')
    await end(1, { retryAtMs: clock.nowMs() })
    await clock.advance(0)
    await end(1)
    expect(left).toEqual(['a1'])
  })

  test('what was cut again and again runs one at a time, beside those that were not', async () => {
    const { started, enter, end } = bench({ concurrency: 3 })
    for (const number of [1, 2, 3]) enter(number, `lane ${number}`, { cuts: 2 })
    for (const number of [4, 5, 6]) enter(number, `lane ${number}`, { cuts: 1 })
    expect(started).toEqual([1, 4, 5])
    await end(1)
    expect(started).toEqual([1, 4, 5, 2])
    await end(4)
    expect(started).toEqual([1, 4, 5, 2, 6])
    await end(2)
    expect(started).toEqual([1, 4, 5, 2, 6, 3])
  })

  test('a stop starts nothing more, waits for what runs, and takes nothing in', async () => {
    const { lanes, started, enter, end } = bench({ concurrency: 1 })
    enter(1, 'a')
    enter(2, 'b')
    let stopped = false
    const stopping = lanes.stop().then(() => {
      stopped = true
    })
    await settle()
    expect(stopped).toBe(false)
    expect(enter(3, 'c')).toBe(false)
    await end(1)
    await stopping
    expect(started).toEqual([1])
  })

  test('a row that leaves its place lets other lanes start; its own stays closed', async () => {
    const { lanes, started, enter, end, leave } = bench({ concurrency: 1 })
    enter(1, 'a')
    enter(2, 'a')
    enter(3, 'b')
    leave(1)
    leave(1)
    expect(started).toEqual([1, 3])
    expect(lanes.load).toEqual({ running: 1, waiting: 2 })
    await end(3)
    expect(started).toEqual([1, 3])
    await end(1)
    expect(started).toEqual([1, 3, 2])
  })

  test('a row that comes back waits until there is room, and goes before those that have not started', async () => {
    const { lanes, started, back, enter, end, leave, retake } = bench({ concurrency: 1 })
    enter(1, 'a')
    leave(1)
    await retake(1)
    expect(back).toEqual([1])
    leave(1)
    enter(2, 'b')
    enter(3, 'c')
    await retake(1)
    expect(back).toEqual([1])
    await end(2)
    expect(back).toEqual([1, 1])
    expect(started).toEqual([1, 2])
    await end(1)
    expect(started).toEqual([1, 2, 3])
    await end(3)
    expect(lanes.load).toEqual({ running: 0, waiting: 0 })
  })

  test('a row that ends while it waits to come back takes no place with it', async () => {
    const { lanes, started, back, enter, end, leave, retake } = bench({ concurrency: 1 })
    enter(1, 'a')
    leave(1)
    enter(2, 'b')
    await retake(1)
    await end(1)
    expect(back).toEqual([1])
    enter(3, 'c')
    enter(4, 'd')
    await end(2)
    expect(started).toEqual([1, 2, 3])
    expect(lanes.load).toEqual({ running: 1, waiting: 1 })
  })

  test('a row that leaves again while it waits to come back takes no place, and comes back when it wants to', async () => {
    const { started, back, enter, end, leave, retake } = bench({ concurrency: 1 })
    for (const [number, lane] of [
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ] as const)
      enter(number, lane)
    leave(1)
    await retake(1)
    leave(1)
    expect(started).toEqual([1, 2])
    await end(2)
    expect(started).toEqual([1, 2, 3])
    back.length = 0
    await retake(1)
    expect(back).toEqual([])
    await end(3)
    expect(back).toEqual([1])
  })

  test('a suspect that is away holds up no other suspect, and comes back when none runs', async () => {
    const { started, back, enter, end, leave, retake } = bench({ concurrency: 3 })
    enter(1, 'a', { cuts: 2 })
    enter(2, 'b', { cuts: 2 })
    leave(1)
    expect(started).toEqual([1, 2])
    await retake(1)
    enter(3, 'c', { cuts: 2 })
    enter(4, 'd')
    expect(back).toEqual([])
    expect(started).toEqual([1, 2, 4])
    await end(2)
    expect(back).toEqual([1])
    expect(started).toEqual([1, 2, 4])
    await end(1)
    expect(started).toEqual([1, 2, 4, 3])
  })

  test('a stop waits for a row that is away, and lets it come back at once', async () => {
    const { lanes, started, back, enter, end, leave, retake } = bench({ concurrency: 1 })
    enter(1, 'a')
    leave(1)
    enter(2, 'b')
    enter(3, 'c')
    await retake(1)
    let stopped = false
    const stopping = lanes.stop().then(() => {
      stopped = true
    })
    await settle()
    expect(back).toEqual([1])
    await end(2)
    expect(stopped).toBe(false)
    await end(1)
    await stopping
    expect(started).toEqual([1, 2])
  })

  test('ten thousand rows of one lane are worked off in linear time', async () => {
    const { log } = testHost()
    const order: number[] = []
    const lanes = new WorkLanes({
      clock: testClock(),
      log,
      concurrency: () => 8,
      async work(number) {
        order.push(number)
        return 'done'
      },
    })
    for (let number = 1; number <= 10_000; number++) lanes.enter({ number, channel: 'x', account: 'a', lane: 'one', atMs: 0, cuts: 0 })
    while (order.length < 10_000) await settle()
    expect(order).toEqual(Array.from({ length: 10_000 }, (_, index) => index + 1))
    expect(lanes.load).toEqual({ running: 0, waiting: 0 })
  })
})
