import { expect, test } from 'vitest'
import { testClock } from './clock.ts'

test('sleeps end in order, each at its own time', async () => {
  const clock = testClock(1000)
  const woke: [string, number][] = []
  void clock.sleep(20).then(() => woke.push(['late', clock.nowMs()]))
  void clock.sleep(10).then(() => woke.push(['early', clock.nowMs()]))
  await clock.advance(9)
  expect(woke).toEqual([])
  await clock.advance(100)
  expect(woke).toEqual([
    ['early', 1010],
    ['late', 1020],
  ])
  expect(clock.nowMs()).toBe(1109)
  expect(clock.monotonicMs()).toBe(109)
})

test('a sleep started by a woken sleeper can end in the same advance', async () => {
  const clock = testClock()
  let rounds = 0
  const loop = async () => {
    for (; rounds < 3; rounds++) await clock.sleep(10)
  }
  const done = loop()
  await clock.advance(30)
  await done
  expect(rounds).toBe(3)
})

test('an aborted sleep ends at once and leaves nothing behind', async () => {
  const clock = testClock()
  const abort = new AbortController()
  const slept = clock.sleep(1000, abort.signal)
  expect(clock.sleeping).toBe(1)
  abort.abort()
  await slept
  await clock.sleep(1000, abort.signal)
  expect(clock.sleeping).toBe(0)
})
