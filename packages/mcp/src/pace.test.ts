import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { Pace, readingPace, readingUnits } from './pace.ts'

test('a pace delays what exceeds its units until the period is over', async () => {
  const clock = testClock()
  const pace = new Pace({ clock, unitsMax: 2, periodMs: 1000 })
  expect([pace.delayMs(), pace.delayMs()]).toEqual([0, 0])
  await clock.advance(400)
  expect(pace.delayMs()).toBe(600)
  await clock.advance(600)
  expect([pace.delayMs(2), pace.delayMs()]).toEqual([0, 1000])
})

test('reads 2,000 short messages or 16 MiB in a second', () => {
  const [short, long] = [readingPace(testClock()), readingPace(testClock())]
  for (let count = 0; count < 2000; count++) expect(short.delayMs(readingUnits(100))).toBe(0)
  expect(short.delayMs(readingUnits(100))).toBe(1000)
  expect(long.delayMs(readingUnits(15 * 1024 * 1024))).toBe(0)
  expect(long.delayMs(readingUnits(1024 * 1024))).toBe(1000)
})
