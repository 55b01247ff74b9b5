import { type JobOutcome, LaneQueue } from '@sluice/kit'
import type { OwnedStore } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { DeliveryQueue } from './delivery-queue.ts'

/** The queue sees only the identity of a lease. */
const owned = { name: 'first' } as unknown as OwnedStore

/** A queue whose attempts end when a test ends them. */
function bench(permits = 2) {
  const clock = testClock()
  const { log, logs } = testHost()
  const started: number[] = []
  const done: string[] = []
  const attempts = new Map<number, PromiseWithResolvers<JobOutcome>>()
  const queue = new DeliveryQueue({
    lanes: new LaneQueue({ clock, permits: () => permits }),
    clock,
    log,
    work({ number }) {
      started.push(number)
      const attempt = Promise.withResolvers<JobOutcome>()
      attempts.set(number, attempt)
      return attempt.promise
    },
    onDone: ({ account }) => void done.push(account),
  })
  const enter = (number: number, lane: string, { atMs = 0, interruptions = 0 } = {}) =>
    queue.enter({ number, channel: 'x', account: `a${number}`, lane, atMs, interruptions }, owned)
  const end = async (number: number, outcome: JobOutcome | Error = 'done') => {
    const attempt = attempts.get(number)
    if (outcome instanceof Error) attempt?.reject(outcome)
    else attempt?.resolve(outcome)
    await settle()
  }
  return { queue, clock, logs, started, done, enter, end }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('DeliveryQueue', () => {
  test('holds a row once, and accepts it again after it has ended', async () => {
    const { queue, started, enter, end } = bench()
    expect(enter(1, 'a')).toBe(true)
    expect(enter(1, 'a')).toBe(false)
    expect(queue.size).toBe(1)
    await end(1)
    expect(queue.size).toBe(0)
    expect(enter(1, 'a')).toBe(true)
    expect(started).toEqual([1, 1])
  })

  test('logs a rejection and tries the row again a little later', async () => {
    const { started, clock, logs, enter, end } = bench()
    enter(1, 'a')
    await end(1, new Error('the disk is full'))
    expect(logs).toMatchObject([{ level: 'error', fields: { number: 1 } }])
    await clock.advance(5000)
    expect(started).toEqual([1, 1])
  })

  test('calls onDone once for each row that ends, not for its retries', async () => {
    const { done, clock, enter, end } = bench()
    enter(1, 'a')
    await end(1, { retryAtMs: clock.nowMs() })
    await clock.advance(0)
    await end(1)
    expect(done).toEqual(['a1'])
  })

  test('runs rows one at a time whose attempts were interrupted twice', async () => {
    const { started, enter, end } = bench(3)
    enter(1, 'a', { interruptions: 2 })
    enter(2, 'b', { interruptions: 2 })
    enter(3, 'c', { interruptions: 1 })
    expect(started).toEqual([1, 3])
    await end(1)
    expect(started).toEqual([1, 3, 2])
  })

  test('knows the age of its oldest row and how long an account has been ready', async () => {
    const { queue, clock, enter, end } = bench(1)
    enter(1, 'a')
    await clock.advance(1000)
    enter(2, 'b')
    await clock.advance(1000)
    expect(queue.oldestMs).toBe(2000)
    expect(queue.readyMs('x a2')).toBe(1000)
    await end(1)
    expect(queue.oldestMs).toBe(1000)
    expect(queue.readyMs('x a2')).toBe(0)
  })

  test('a stop starts no more rows, accepts none and waits for attempts under way', async () => {
    const { queue, clock, started, done, enter, end } = bench(2)
    enter(1, 'a')
    enter(2, 'a')
    enter(3, 'c', { atMs: clock.nowMs() + 1000 })
    enter(4, 'c')
    let isStopped = false
    const stopping = queue.stop().then(() => {
      isStopped = true
    })
    await settle()
    expect(isStopped).toBe(false)
    expect(enter(5, 'd')).toBe(false)
    await end(1, { retryAtMs: clock.nowMs() })
    await stopping
    await clock.advance(10_000)
    expect([started, done]).toEqual([[1], []])
  })
})
