import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { memoryCounters } from './memory-counters.ts'

// The rules of every store's counters are in the conformance suite of stores.
test('a lockout remembers a bounded number of keys', async () => {
  const lockout = memoryCounters(testClock()).lockout('codes', { failuresMax: 3, windowMs: 60_000, lockMs: 300_000, keysMax: 2 })
  for (let failure = 0; failure < 3; failure++) await lockout.fail('a')
  expect(lockout.leftSecs('a')).toBe(300)
  await lockout.fail('b')
  await lockout.fail('c')
  expect(lockout.leftSecs('a')).toBe(0)
})

test('answers at once', () => {
  const counters = memoryCounters(testClock())
  expect(counters.rateLimit('calls', { limit: 1, keysMax: 1 }).take('a')).toBe(0)
})
