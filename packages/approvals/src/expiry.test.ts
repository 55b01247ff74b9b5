import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { ExpiryTimer } from './expiry.ts'

function arrange(dates: readonly number[]) {
  const clock = testClock()
  const due = new Set(dates.map((ms) => clock.nowMs() + ms))
  const ended: number[] = []
  const startMs = clock.nowMs()
  const expiry = new ExpiryTimer(clock, async () => {
    for (const atMs of due) {
      if (atMs > clock.nowMs()) continue
      due.delete(atMs)
      ended.push(clock.nowMs() - startMs)
    }
    return due.size === 0 ? undefined : Math.min(...due)
  })
  return { clock, due, ended, expiry }
}

test('ExpiryTimer uses one timer for any number of expiry times', async () => {
  const dates = Array.from({ length: 1000 }, (_, index) => (index + 1) * 1000)
  const { clock, due, ended, expiry } = arrange(dates)
  for (const atMs of due) expiry.arm(atMs)
  expect(clock.sleeping).toBe(1)
  await clock.advance(10_000)
  expect(ended).toEqual(dates.slice(0, 10))
  expect(clock.sleeping).toBe(1)
})

test('ExpiryTimer moves to an earlier time, and leaves no timer after the last one', async () => {
  const { clock, due, ended, expiry } = arrange([50_000])
  expiry.arm(clock.nowMs() + 50_000)
  due.add(clock.nowMs() + 2000)
  expiry.arm(clock.nowMs() + 2000)
  await clock.advance(50_000)
  expect(ended).toEqual([2000, 50_000])
  expect(clock.sleeping).toBe(0)
})

test('ExpiryTimer notices within a minute that the clock was set forward', async () => {
  const clock = testClock()
  let shiftMs = 0
  let calls = 0
  const shifted = { ...clock, nowMs: () => clock.nowMs() + shiftMs }
  const expiry = new ExpiryTimer(shifted, async () => {
    calls += 1
    return undefined
  })
  expiry.arm(clock.nowMs() + 3_600_000)
  await clock.advance(1000)
  shiftMs = 3_600_000
  await clock.advance(60_000)
  expect(calls).toBe(1)
})

test('ExpiryTimer calls nothing after its stop', async () => {
  const { clock, ended, expiry } = arrange([1000])
  expiry.arm(clock.nowMs() + 1000)
  expiry.stop()
  expiry.arm(clock.nowMs() + 500)
  await clock.advance(5000)
  expect(ended).toEqual([])
  expect(clock.sleeping).toBe(0)
})
