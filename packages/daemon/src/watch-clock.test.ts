import type { SluiceEvent } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { watchClock } from './watch-clock.ts'

/** A watch over a clock that can be set. */
function watched() {
  const steady = testClock()
  let setMs = 0
  const clock = { ...steady, nowMs: () => steady.nowMs() + setMs }
  const emitted: SluiceEvent[] = []
  const stop = new AbortController()
  watchClock({ clock, log: testHost().log, events: { emit: (event) => emitted.push(event) }, signal: stop.signal })
  return { emitted, stop, set: (ms: number) => (setMs += ms), pass: () => steady.advance(10_000), sleeping: () => steady.sleeping }
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
