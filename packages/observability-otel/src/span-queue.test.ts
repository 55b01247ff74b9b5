import type { LogFields, Observation } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import type { Collector } from './collector.ts'
import { BATCH_MAX, CLOSE_MS_MAX, DELAY_MS, NOTICE_MS, QUEUE_MAX, SEND_MS_MAX, SpanQueue } from './span-queue.ts'
import type { Spanned } from './spanned.ts'

const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }
const seen = (tool = 't'): Observation => ({ kind: 'tool_call', tool, outcome: 'ok', span: { trace, startMs: 0, tookMs: 1 } })
const settle = () => new Promise((resolve) => setImmediate(resolve))

interface Bench {
  readonly queue: SpanQueue
  readonly clock: TestClock
  /** The sizes of the batches that were handed on. */
  readonly batches: number[]
  readonly told: LogFields[]
  readonly closings: () => number
  add(count: number): void
}

function bench(send: (batch: readonly Spanned[]) => Promise<void> = async () => {}, open?: () => Promise<Collector>): Bench {
  const clock = testClock()
  const batches: number[] = []
  const told: LogFields[] = []
  let closings = 0
  const collector: Collector = {
    send(batch) {
      batches.push(batch.length)
      return send(batch)
    },
    close: () => void closings++,
  }
  const ignore = () => {}
  const log = { debug: ignore, info: ignore, error: ignore, warn: (_: string, fields: LogFields = {}) => void told.push(fields) }
  const queue = new SpanQueue({ clock, log, open: open ?? (async () => collector) })
  return {
    queue,
    clock,
    batches,
    told,
    closings: () => closings,
    add: (count) => {
      for (let at = 0; at < count; at++) queue.add(seen())
    },
  }
}

const never = () => new Promise<void>(() => {})

describe('a queue of spans', () => {
  test('nothing is opened before the first span', async () => {
    let opened = 0
    const { queue, clock } = bench(undefined, () => {
      opened++
      return never() as never
    })
    queue.add({ kind: 'commit', units: 1, tookMs: 1 })
    await clock.advance(DELAY_MS * 10)
    expect(opened).toBe(0)
  })

  test('a few wait a moment for more, and go together', async () => {
    const { clock, batches, add } = bench()
    add(3)
    await clock.advance(DELAY_MS - 1)
    expect(batches).toEqual([])
    add(2)
    await clock.advance(1)
    expect(batches).toEqual([5])
  })

  test('a whole batch does not wait', async () => {
    const { batches, add } = bench()
    add(BATCH_MAX)
    await settle()
    expect(batches).toEqual([BATCH_MAX])
  })

  test('one batch is under way at a time; what comes meanwhile is bounded, and what is beyond is counted', async () => {
    const { clock, batches, told, add } = bench(never)
    add(BATCH_MAX)
    await settle()
    add(QUEUE_MAX + 7)
    await clock.advance(0)
    expect(batches).toEqual([BATCH_MAX])
    expect(told).toEqual([{ dropped: 1, reason: 'the collector is slower than the spans come' }])
    await clock.advance(NOTICE_MS)
    const counted = told.reduce((sum, { dropped }) => sum + Number(dropped), 0)
    expect(counted).toBeGreaterThanOrEqual(7)
  })

  test('a collector that hangs costs its batch after a while, and is begun with anew', async () => {
    const { clock, batches, told, closings, add } = bench(never)
    add(BATCH_MAX + 1)
    await clock.advance(SEND_MS_MAX + DELAY_MS)
    expect(closings()).toBe(1)
    expect(batches).toEqual([BATCH_MAX, 1])
    expect(told).toEqual([{ dropped: BATCH_MAX, reason: 'no answer within 12 s' }])
  })

  test('drops are told once a minute, with how many there were', async () => {
    const { clock, told, add } = bench(() => Promise.reject(new Error('refused')))
    for (let at = 0; at < 90; at++) {
      add(1)
      await clock.advance(DELAY_MS)
    }
    expect(told).toEqual([
      { dropped: 1, reason: 'refused' },
      { dropped: 60, reason: 'refused' },
    ])
  })

  test('what a collector is too slow for is told once a minute, too, while it takes what it can', async () => {
    const { clock, told, add } = bench(() => clock.sleep(1000))
    add(BATCH_MAX)
    await settle()
    for (let at = 0; at < 90; at++) {
      add(QUEUE_MAX + 1)
      await clock.advance(1000)
    }
    expect(told).toHaveLength(2)
  })

  test('a collector that is back is told of what was lost meanwhile', async () => {
    let isDown = true
    const { clock, told, add } = bench(() => (isDown ? Promise.reject(new Error('down')) : Promise.resolve()))
    for (const down of [true, true, true, false]) {
      isDown = down
      add(1)
      await clock.advance(DELAY_MS)
    }
    expect(told.map(({ dropped }) => dropped)).toEqual([1, 2])
  })

  test('an exporter that cannot be loaded is tried again with the next spans', async () => {
    let tries = 0
    const { clock, told, add } = bench(undefined, () => {
      tries++
      return Promise.reject(new Error('no such module'))
    })
    add(1)
    await clock.advance(DELAY_MS)
    add(1)
    await clock.advance(DELAY_MS)
    expect(tries).toBe(2)
    expect(told).toEqual([{ dropped: 1, reason: 'no such module' }])
  })
})

describe('the end of the daemon', () => {
  test('what is queued is sent at once', async () => {
    const { queue, batches, told, add } = bench()
    add(BATCH_MAX + 3)
    await queue.close()
    expect(batches).toEqual([BATCH_MAX, 3])
    expect(told).toEqual([])
  })

  test('a collector that hangs holds it up for two seconds and no longer; what was not sent is counted', async () => {
    const { queue, clock, told, add } = bench(never)
    add(BATCH_MAX + 3)
    await settle()
    let isClosed = false
    const closing = queue.close().then(() => {
      isClosed = true
    })
    await clock.advance(CLOSE_MS_MAX - 1)
    expect(isClosed).toBe(false)
    await clock.advance(1)
    await closing
    expect(told).toEqual([{ dropped: 3 + BATCH_MAX, reason: 'the daemon stopped before they were sent' }])
  })

  test('so does one whose exporter is still being loaded', async () => {
    const { queue, clock, add } = bench(undefined, () => never() as never)
    add(1)
    const closing = queue.close()
    await clock.advance(CLOSE_MS_MAX)
    await closing
  })

  test('nothing is taken any more, and closing twice is no error', async () => {
    const { queue, clock, batches, add } = bench()
    await queue.close()
    add(1)
    await clock.advance(DELAY_MS)
    await queue.close()
    expect(batches).toEqual([])
  })
})
