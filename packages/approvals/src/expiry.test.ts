import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { createExpiry } from './expiry.ts'

function arrange(dates: readonly number[]) {
  const clock = testClock()
  const due = new Set(dates.map((ms) => clock.nowMs() + ms))
  const ended: number[] = []
  const startMs = clock.nowMs()
  const expiry = createExpiry(clock, async () => {
    for (const atMs of due) {
      if (atMs > clock.nowMs()) continue
      due.delete(atMs)
      ended.push(clock.nowMs() - startMs)
    }
    return due.size === 0 ? undefined : Math.min(...due)
  })
  return { clock, due, ended, expiry }
}

test('however many wait, one timer rings at each moment something is over', async () => {
  const dates = Array.from({ length: 1000 }, (_, index) => (index + 1) * 1000)
  const { clock, due, ended, expiry } = arrange(dates)
  for (const atMs of due) expiry.by(atMs)
  expect(clock.sleeping).toBe(1)
  await clock.advance(10_000)
  expect(ended).toEqual(dates.slice(0, 10))
  expect(clock.sleeping).toBe(1)
})

test('an earlier one moves the timer forward, and the last one leaves none', async () => {
  const { clock, due, ended, expiry } = arrange([50_000])
  expiry.by(clock.nowMs() + 50_000)
  due.add(clock.nowMs() + 2000)
  expiry.by(clock.nowMs() + 2000)
  await clock.advance(50_000)
  expect(ended).toEqual([2000, 50_000])
  expect(clock.sleeping).toBe(0)
})

test('a clock that is set forward is noticed within a minute', async () => {
  const clock = testClock()
  let shiftMs = 0
  let rang = 0
  const shifted = { ...clock, nowMs: () => clock.nowMs() + shiftMs }
  const expiry = createExpiry(shifted, async () => {
    rang += 1
    return undefined
  })
  expiry.by(clock.nowMs() + 3_600_000)
  await clock.advance(1000)
  shiftMs = 3_600_000
  await clock.advance(60_000)
  expect(rang).toBe(1)
})

test('after the stop nothing rings', async () => {
  const { clock, ended, expiry } = arrange([1000])
  expiry.by(clock.nowMs() + 1000)
  expiry.stop()
  expiry.by(clock.nowMs() + 500)
  await clock.advance(5000)
  expect(ended).toEqual([])
  expect(clock.sleeping).toBe(0)
})
