import { type TestClock, testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { ageMs, followClock, jumpedMs, olderThanMs, otherClocks, recallClocks } from './steady-age.ts'

const HOUR_MS = 3_600_000
const YEAR_MS = 365 * 24 * HOUR_MS

test('an age leaves out the jumps of the clock, ahead and back', async () => {
  const clock = testClock()
  followClock(clock)
  const before = clock.nowMs() - HOUR_MS
  await clock.advance(HOUR_MS)
  const early = clock.nowMs()
  clock.jump(YEAR_MS)
  followClock(clock)
  expect(jumpedMs(clock)).toBe(YEAR_MS)
  await clock.advance(HOUR_MS)
  const far = clock.nowMs()
  await clock.advance(HOUR_MS)
  expect([before, early, far].map((ms) => ageMs(clock, ms) / HOUR_MS)).toEqual([4, 2, 1])
  clock.jump(-YEAR_MS)
  expect([before, early, far].map((ms) => ageMs(clock, ms) / HOUR_MS)).toEqual([4, 2, 1])
  const late = clock.nowMs()
  await clock.advance(HOUR_MS)
  expect([before, early, far, late].map((ms) => ageMs(clock, ms) / HOUR_MS)).toEqual([5, 3, 2, 1])
  expect(jumpedMs(clock)).toBe(0)
})

test('an age is that of the right clock where the clock was a year ahead at the start', async () => {
  const clock = testClock()
  const stored = clock.nowMs()
  clock.jump(YEAR_MS)
  await clock.advance(HOUR_MS)
  followClock(clock)
  const ahead = clock.nowMs()
  await clock.advance(HOUR_MS)
  clock.jump(-YEAR_MS)
  followClock(clock)
  const now = clock.nowMs()
  expect([stored, ahead, now].map((ms) => ageMs(clock, ms) / HOUR_MS)).toEqual([2, 1, 0])
  await clock.advance(HOUR_MS)
  expect([stored, ahead, now].map((ms) => ageMs(clock, ms) / HOUR_MS)).toEqual([3, 2, 1])
})

test('what arrives after a jump, before it is noticed, is young', async () => {
  const clock = testClock()
  followClock(clock)
  await clock.advance(30 * 24 * HOUR_MS)
  for (const jump of [YEAR_MS, -2 * YEAR_MS]) {
    clock.jump(jump)
    const arrived = clock.nowMs()
    await clock.advance(1000)
    followClock(clock)
    await clock.advance(HOUR_MS)
    expect(ageMs(clock, arrived)).toBe(HOUR_MS + 1000)
  }
})

test('an age is that of the clock while it is not set, and small corrections change nothing', async () => {
  const clock = testClock()
  const since = clock.nowMs() - 2 * YEAR_MS
  expect(ageMs(clock, since)).toBe(2 * YEAR_MS)
  clock.jump(3000)
  await clock.advance(HOUR_MS)
  expect(Math.abs(ageMs(clock, since) - 2 * YEAR_MS - HOUR_MS)).toBeLessThanOrEqual(3000)
})

test('a time that the clock has not reached counts from the start', async () => {
  const clock = testClock()
  followClock(clock)
  const far = clock.nowMs() + YEAR_MS
  expect(ageMs(clock, far)).toBe(0)
  await clock.advance(HOUR_MS)
  expect(ageMs(clock, far)).toBe(HOUR_MS)
})

test('the time before which all is old leaves out jumps ahead, and follows the clock after a jump back', async () => {
  const clock = testClock()
  const startMs = clock.nowMs()
  expect(olderThanMs(clock, HOUR_MS)).toBe(startMs - HOUR_MS)
  await clock.advance(2 * HOUR_MS)
  clock.jump(YEAR_MS)
  expect(olderThanMs(clock, HOUR_MS)).toBe(startMs + HOUR_MS)
  await clock.advance(HOUR_MS)
  expect(olderThanMs(clock, HOUR_MS)).toBe(startMs + YEAR_MS + 2 * HOUR_MS)
  clock.jump(-YEAR_MS)
  expect(olderThanMs(clock, HOUR_MS)).toBe(startMs + 2 * HOUR_MS)
  await clock.advance(HOUR_MS)
  expect(olderThanMs(clock, HOUR_MS)).toBe(startMs + 3 * HOUR_MS)
})

test('the number of jumps that are remembered is bounded', async () => {
  const clock = testClock()
  followClock(clock)
  const since = clock.nowMs()
  for (let jump = 0; jump < 300; jump++) {
    clock.jump(jump % 2 === 0 ? YEAR_MS : -YEAR_MS)
    await clock.advance(1000)
    followClock(clock)
  }
  expect(ageMs(clock, since)).toBe(300_000)
})

describe('after a restart', () => {
  /** The clock of the next process, which knows what the one before has seen. */
  const restarted = (before: TestClock): TestClock => {
    const clock = testClock(before.nowMs())
    recallClocks(clock, otherClocks(before))
    return clock
  }

  test('while the clock is a year ahead, what waits since before is as old as it is', async () => {
    const first = testClock()
    followClock(first)
    const early = first.nowMs()
    await first.advance(HOUR_MS)
    first.jump(YEAR_MS)
    followClock(first)
    const late = first.nowMs()
    await first.advance(HOUR_MS)
    const second = restarted(first)
    expect([ageMs(second, early), ageMs(second, late)]).toEqual([2 * HOUR_MS, HOUR_MS])
    expect(olderThanMs(second, 3 * HOUR_MS)).toBeLessThan(early)
    await second.advance(HOUR_MS)
    const third = restarted(second)
    expect([ageMs(third, early), ageMs(third, late)]).toEqual([3 * HOUR_MS, 2 * HOUR_MS])
    third.jump(-YEAR_MS)
    await third.advance(HOUR_MS)
    expect([ageMs(third, early), ageMs(third, late), ageMs(third, third.nowMs())]).toEqual([4 * HOUR_MS, 3 * HOUR_MS, 0])
  })

  test('a jump is no jump of the new process', () => {
    const first = testClock()
    followClock(first)
    first.jump(YEAR_MS)
    expect(otherClocks(first)).toEqual([YEAR_MS])
    expect(jumpedMs(restarted(first))).toBe(0)
  })

  test('what arrives later is new, whichever clocks were seen', async () => {
    for (const ms of [YEAR_MS, -YEAR_MS]) {
      const clock = testClock()
      recallClocks(clock, [ms])
      await clock.advance(1000)
      const now = clock.nowMs()
      await clock.advance(HOUR_MS)
      expect(ageMs(clock, now)).toBe(HOUR_MS)
    }
  })
})
