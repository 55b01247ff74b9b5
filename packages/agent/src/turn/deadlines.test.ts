import { setImmediate } from 'node:timers/promises'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { Deadlines } from './deadlines.ts'

test('deadlines expire at their times in any order of arrival', async () => {
  const clock = testClock()
  const deadlines = new Deadlines(clock)
  const expired: string[] = []
  for (const [name, ms] of [
    ['late', 300],
    ['early', 100],
    ['middle', 200],
  ] as const) {
    deadlines.watch(ms, () => expired.push(`${name} at ${clock.monotonicMs()}`))
  }
  await clock.advance(1000)
  expect(expired).toEqual(['early at 100', 'middle at 200', 'late at 300'])
})

test('one sleep serves all deadlines and ends with the last', async () => {
  const clock = testClock()
  const deadlines = new Deadlines(clock)
  for (let i = 0; i < 100; i++) deadlines.watch(1000 - i, () => undefined)
  expect(clock.sleeping).toBe(1)
  await clock.advance(2000)
  expect(clock.sleeping).toBe(0)
})

test('a postponed deadline expires later, a forgotten one never', async () => {
  const clock = testClock()
  const deadlines = new Deadlines(clock)
  const expired: number[] = []
  const postponed = deadlines.watch(100, () => expired.push(clock.monotonicMs()))
  const forgotten = deadlines.watch(100, () => expired.push(-1))
  await clock.advance(50)
  deadlines.postpone(postponed, 100)
  deadlines.forget(forgotten)
  await clock.advance(1000)
  expect(expired).toEqual([150])
})

test('a paused deadline does not advance', async () => {
  const clock = testClock()
  const deadlines = new Deadlines(clock)
  const expired: number[] = []
  const deadline = deadlines.watch(100, () => expired.push(clock.monotonicMs()))
  await clock.advance(60)
  const goOn = deadlines.pause(deadline)
  await clock.advance(1000)
  expect(expired).toEqual([])
  goOn()
  await clock.advance(39)
  expect(expired).toEqual([])
  await clock.advance(1)
  expect(expired).toEqual([1100])
})

test('a deadline that passed during a suspend waits one more second', async () => {
  let monotonicMs = 0
  const wake: (() => void)[] = []
  const clock = {
    nowMs: () => monotonicMs,
    monotonicMs: () => monotonicMs,
    sleep: () => new Promise<void>((resolve) => wake.push(resolve)),
  }
  const deadlines = new Deadlines(clock)
  const expired: string[] = []
  const answered = deadlines.watch(10_000, () => expired.push('answered'))
  deadlines.watch(10_000, () => expired.push('silent'))
  const fireAt = async (atMs: number) => {
    monotonicMs = atMs
    wake.shift()?.()
    await setImmediate()
  }
  await fireAt(30_000)
  expect(expired).toEqual([])
  deadlines.forget(answered)
  await fireAt(31_000)
  expect(expired).toEqual(['silent'])
})
