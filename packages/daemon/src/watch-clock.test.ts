import { ageMs } from '@sluice/kit'
import type { SluiceEvent } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { expect, test } from 'vitest'
import { recallSeenClocks, watchClock } from './watch-clock.ts'

const HOUR_MS = 3_600_000
const YEAR_MS = 365 * 24 * HOUR_MS

/** A watch over a clock that can be set. */
function watched(keyValue = memoryKeyValue()) {
  const steady = testClock()
  const store = { keyValue: () => keyValue }
  let setMs = 0
  const clock = { ...steady, nowMs: () => steady.nowMs() + setMs }
  const emitted: SluiceEvent[] = []
  const stop = new AbortController()
  watchClock({ clock, store, log: testHost().log, events: { emit: (event) => emitted.push(event) }, signal: stop.signal })
  return {
    clock,
    store,
    emitted,
    stop,
    set: (ms: number) => (setMs += ms),
    pass: () => steady.advance(10_000),
    sleeping: () => steady.sleeping,
  }
}

test.each([
  ['an hour forward', 3_600_000],
  ['5 seconds back', -5000],
])('a clock that is set %s is reported once', async (_what, ms) => {
  const { emitted, set, pass } = watched()
  await pass()
  set(ms)
  await pass()
  await pass()
  expect(emitted).toEqual([{ type: 'clock_jumped', ms }])
})

test('a correction of less than 5 seconds is not reported, however often it comes', async () => {
  const { emitted, set, pass } = watched()
  for (let times = 0; times < 5; times++) {
    set(4999)
    await pass()
  }
  expect(emitted).toEqual([])
})

test('the watch ends with its signal', async () => {
  const { stop, pass, sleeping } = watched()
  stop.abort()
  await pass()
  expect(sleeping()).toBe(0)
})

test.each([
  ['at once', 0, 10_000],
  ['when the clock has been ahead for more than a week', 8 * 24 * HOUR_MS, YEAR_MS + 8 * 24 * HOUR_MS + 10_000],
])('a process that starts %s takes over what the one before has seen, for a week', async (_when, downMs, expectedMs) => {
  const first = watched()
  const since = first.clock.nowMs()
  await recallSeenClocks(first)
  first.set(YEAR_MS)
  await first.pass()
  const clock = testClock(first.clock.nowMs() + downMs)
  await recallSeenClocks({ clock, store: first.store })
  expect(ageMs(clock, since)).toBe(expectedMs)
})
