import { testClock } from '@sluice/testkit/clock'
import { processorMs } from '@sluice/testkit/processor-time'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RateLimiter } from './rate-limiter.ts'

/** A clock that the test sets, so that thousands of calls fit into a test. */
const settableClock = () => {
  const clock = { ms: 0, monotonicMs: () => clock.ms }
  return clock
}

/** The same limit, implemented in the simplest way. */
function naiveLimiter(limit: number) {
  const calls = new Map<string, number[]>()
  return (key: string, nowMs: number): number => {
    const kept = (calls.get(key) ?? []).filter((at) => at > nowMs - 60_000)
    calls.set(key, kept)
    const [oldest = 0] = kept
    if (kept.length >= limit) return Math.ceil((oldest + 60_000 - nowMs) / 1000)
    kept.push(nowMs)
    return 0
  }
}

describe('the sliding window', () => {
  test('allows at most the limit in any 60 s and does not count refused calls', () => {
    const step = fc.record({ key: fc.constantFrom('a', 'b', 'c'), advanceMs: fc.oneof(fc.nat(50), fc.nat(20_000), fc.constant(60_000)) })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.array(step, { maxLength: 200 }), (limit, steps) => {
        const clock = settableClock()
        const limiter = new RateLimiter({ clock, limit, keysMax: 100 })
        const naive = naiveLimiter(limit)
        for (const { key, advanceMs } of steps) {
          clock.ms += advanceMs
          expect(limiter.take(key)).toBe(naive(key, clock.ms))
        }
      }),
    )
  })

  test('allows a call after the announced wait', async () => {
    const clock = testClock()
    const limiter = new RateLimiter({ clock, limit: 1, keysMax: 10 })
    limiter.take('a')
    await clock.advance(12_345)
    const waitSecs = limiter.take('a')
    expect(waitSecs).toBe(48)
    await clock.advance(waitSecs * 1000)
    expect(limiter.take('a')).toBe(0)
  })

  test('with limit 0 allows everything and remembers no key', () => {
    const limiter = new RateLimiter({ clock: testClock(), limit: 0, keysMax: 10 })
    for (let call = 0; call < 1000; call++) expect(limiter.take('a')).toBe(0)
    expect(limiter.size).toBe(0)
  })
})

describe('a full table', () => {
  test('forgets the least recently used key', () => {
    const limiter = new RateLimiter({ clock: testClock(), limit: 2, keysMax: 3 })
    for (const key of ['a', 'b', 'c']) limiter.take(key)
    limiter.take('d')
    expect(limiter.size).toBe(3)
    expect([limiter.take('b'), limiter.take('b')], 'b was remembered').toEqual([0, 60])
    expect([limiter.take('a'), limiter.take('a')], 'a was forgotten').toEqual([0, 0])
  })

  test('keeps keys at their limit while another is below its own', () => {
    const spray = fc.array(fc.record({ name: fc.nat(500), advanceMs: fc.nat(400) }), { minLength: 1, maxLength: 120 })
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 5 }), fc.integer({ min: 2, max: 20 }), spray, (limit, keysMax, names) => {
        const clock = settableClock()
        const limiter = new RateLimiter({ clock, limit, keysMax })
        for (let call = 0; call < limit; call++) limiter.take('greedy')
        const seen = new Set<number>()
        for (const { name, advanceMs } of names) {
          if (seen.has(name)) continue
          seen.add(name)
          clock.ms += advanceMs
          limiter.take(`spray-${name}`)
          expect(limiter.size).toBeLessThanOrEqual(keysMax)
          if (clock.ms < 60_000) expect(limiter.take('greedy')).toBeGreaterThan(0)
        }
      }),
    )
  })

  test('accepts a new key if all others are at their limit', () => {
    const limiter = new RateLimiter({ clock: testClock(), limit: 1, keysMax: 2 })
    for (let name = 0; name < 1000; name++) expect(limiter.take(String(name))).toBe(0)
    expect(limiter.size).toBe(2)
  })

  test('does not scan the table for a new key', () => {
    const clock = settableClock()
    const limiter = new RateLimiter({ clock, limit: 60, keysMax: 10_000 })
    const startedAtMs = processorMs()
    for (let name = 0; name < 150_000; name++) {
      clock.ms += 1
      limiter.take(String(name))
    }
    expect(processorMs() - startedAtMs).toBeLessThan(2000)
  })
})
