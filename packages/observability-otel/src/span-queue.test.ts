import type { LogFields, Observation } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import type { Collector } from './collector.ts'
import type { SpanObservation } from './describe-span.ts'
import { BATCH_MAX, CLOSE_MS_MAX, DELAY_MS, NOTICE_MS, QUEUE_MAX, SEND_MS_MAX, SpanQueue } from './span-queue.ts'

const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }
const observation = (tool = 't'): Observation => ({ kind: 'tool_call', tool, outcome: 'ok', span: { trace, startMs: 0, tookMs: 1 } })
const settle = () => new Promise((resolve) => setImmediate(resolve))

interface Bench {
  readonly queue: SpanQueue
  readonly clock: TestClock
  /** The sizes of the sent batches. */
  readonly batches: number[]
  /** The fields of the logged warnings. */
  readonly notices: LogFields[]
  readonly closeCount: () => number
  add(count: number): void
}

function bench(send: (batch: readonly SpanObservation[]) => Promise<void> = async () => {}, open?: () => Promise<Collector>): Bench {
  const clock = testClock()
  const batches: number[] = []
  const notices: LogFields[] = []
  let closeCount = 0
  const collector: Collector = {
    send(batch) {
      batches.push(batch.length)
      return send(batch)
    },
    close: () => void closeCount++,
  }
  const ignore = () => {}
  const log = { debug: ignore, info: ignore, error: ignore, warn: (_: string, fields: LogFields = {}) => void notices.push(fields) }
  const queue = new SpanQueue(clock, log, open ?? (async () => collector))
  return {
    queue,
    clock,
    batches,
    notices,
    closeCount: () => closeCount,
    add: (count) => {
      for (let at = 0; at < count; at++) queue.add(observation())
    },
  }
}

const never = () => new Promise<void>(() => {})

describe('SpanQueue', () => {
  test('opens no collector before the first span', async () => {
    let opened = 0
    const { queue, clock } = bench(undefined, () => {
      opened++
      return never() as never
    })
    queue.add({ kind: 'commit', units: 1, tookMs: 1 })
    await clock.advance(DELAY_MS * 10)
    expect(opened).toBe(0)
  })

  test('sends an incomplete batch after a delay', async () => {
    const { clock, batches, add } = bench()
    add(3)
    await clock.advance(DELAY_MS - 1)
    expect(batches).toEqual([])
    add(2)
    await clock.advance(1)
    expect(batches).toEqual([5])
  })

  test('sends a full batch at once', async () => {
    const { batches, add } = bench()
    add(BATCH_MAX)
    await settle()
    expect(batches).toEqual([BATCH_MAX])
  })

  test('sends one batch at a time, bounds the queue and counts dropped spans', async () => {
    const { clock, batches, notices, add } = bench(never)
    add(BATCH_MAX)
    await settle()
    add(QUEUE_MAX + 7)
    await clock.advance(0)
    expect(batches).toEqual([BATCH_MAX])
    expect(notices).toEqual([{ dropped: 1, reason: 'the collector is slower than the spans arrive' }])
    await clock.advance(NOTICE_MS)
    const counted = notices.reduce((sum, { dropped }) => sum + Number(dropped), 0)
    expect(counted).toBeGreaterThanOrEqual(7)
  })

  test('drops the batch of a collector that hangs, and closes the collector', async () => {
    const { clock, batches, notices, closeCount, add } = bench(never)
    add(BATCH_MAX + 1)
    await clock.advance(SEND_MS_MAX + DELAY_MS)
    expect(closeCount()).toBe(1)
    expect(batches).toEqual([BATCH_MAX, 1])
    expect(notices).toEqual([{ dropped: BATCH_MAX, reason: 'no answer within 12 s' }])
  })

  test('logs the number of dropped spans once a minute', async () => {
    const { clock, notices, add } = bench(() => Promise.reject(new Error('refused')))
    for (let at = 0; at < 90; at++) {
      add(1)
      await clock.advance(DELAY_MS)
    }
    expect(notices).toEqual([
      { dropped: 1, reason: 'refused' },
      { dropped: 60, reason: 'refused' },
    ])
  })

  test('logs drops once a minute while a slow collector accepts some batches', async () => {
    const { clock, notices, add } = bench(() => clock.sleep(1000))
    add(BATCH_MAX)
    await settle()
    for (let at = 0; at < 90; at++) {
      add(QUEUE_MAX + 1)
      await clock.advance(1000)
    }
    expect(notices).toHaveLength(2)
  })

  test('logs the dropped spans when the collector works again', async () => {
    let isDown = true
    const { clock, notices, add } = bench(() => (isDown ? Promise.reject(new Error('down')) : Promise.resolve()))
    for (const down of [true, true, true, false]) {
      isDown = down
      add(1)
      await clock.advance(DELAY_MS)
    }
    expect(notices.map(({ dropped }) => dropped)).toEqual([1, 2])
  })

  test('tries to load the exporter again with the next spans', async () => {
    let tries = 0
    const { clock, notices, add } = bench(undefined, () => {
      tries++
      return Promise.reject(new Error('no such module'))
    })
    add(1)
    await clock.advance(DELAY_MS)
    add(1)
    await clock.advance(DELAY_MS)
    expect(tries).toBe(2)
    expect(notices).toEqual([{ dropped: 1, reason: 'no such module' }])
  })
})

describe('SpanQueue.close', () => {
  test('sends the queued spans at once', async () => {
    const { queue, batches, notices, add } = bench()
    add(BATCH_MAX + 3)
    await queue.close()
    expect(batches).toEqual([BATCH_MAX, 3])
    expect(notices).toEqual([])
  })

  test('waits two seconds for a collector that hangs, and counts the unsent spans', async () => {
    const { queue, clock, notices, add } = bench(never)
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
    expect(notices).toEqual([{ dropped: 3 + BATCH_MAX, reason: 'the daemon stopped before they were sent' }])
  })

  test('waits two seconds for an exporter that is still being loaded', async () => {
    const { queue, clock, add } = bench(undefined, () => never() as never)
    add(1)
    const closing = queue.close()
    await clock.advance(CLOSE_MS_MAX)
    await closing
  })

  test('ignores later spans and a second call', async () => {
    const { queue, clock, batches, add } = bench()
    await queue.close()
    add(1)
    await clock.advance(DELAY_MS)
    await queue.close()
    expect(batches).toEqual([])
  })
})
