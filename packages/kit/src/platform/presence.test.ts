import type { Gap } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { beforeEach, expect, test } from 'vitest'
import { Presence } from './presence.ts'

const START_MS = Date.UTC(2026, 0, 1)
let clock: ReturnType<typeof testClock>
let keyValue: ReturnType<typeof memoryKeyValue>
let gaps: Gap[]
const report = { gap: (gap: Gap) => void gaps.push(gap) }
const create = () => new Presence({ keyValue, clock }, 'nothing is kept')

beforeEach(() => {
  ;[clock, keyValue, gaps] = [testClock(START_MS), memoryKeyValue(), []]
})

test('the first connection ever reports no gap, and a later one the time without any', async () => {
  const presence = create()
  await presence.load()
  presence.joined(report)
  expect(gaps).toEqual([])
  await clock.advance(10_000)
  presence.left()
  await clock.advance(5000)
  presence.joined(report)
  expect(gaps).toEqual([{ sinceMs: START_MS + 10_000, why: 'nothing is kept' }])
})

test('a second connection, or a connection without missed messages, reports no gap', async () => {
  const presence = create()
  presence.joined(report)
  presence.joined(report)
  presence.left()
  presence.joined(report)
  presence.left()
  presence.left()
  await clock.advance(5000)
  presence.joined(report, false)
  expect(gaps).toEqual([])
})

test('a gap that a restart causes begins at the last stored time, which is at most a minute old', async () => {
  const killed = create()
  await killed.load()
  killed.joined(report)
  for (let second = 0; second < 200; second += 5) {
    await killed.flush()
    await clock.advance(5000)
  }
  const next = create()
  await next.load()
  next.joined(report)
  expect(gaps).toHaveLength(1)
  expect(clock.nowMs() - (gaps[0]?.sinceMs ?? 0)).toBeLessThanOrEqual(65_000)
})

test('writes at most once a minute, exactly at the end, and again after a failure', async () => {
  const kept = memoryKeyValue()
  let writes = 0
  let isFull = false
  keyValue = {
    ...kept,
    async set(key, value) {
      if (isFull) throw new Error('the disk is full')
      writes += 1
      await kept.set(key, value)
    },
  }
  const presence = create()
  await presence.flush()
  expect(writes).toBe(0)
  presence.joined(report)
  for (let second = 0; second < 120; second += 5) {
    await presence.flush()
    await clock.advance(5000)
  }
  expect(writes).toBe(2)
  presence.left()
  isFull = true
  await expect(presence.flush()).rejects.toThrow('full')
  isFull = false
  await presence.flush()
  expect(await kept.get('present-until')).toBe(clock.nowMs())
})
