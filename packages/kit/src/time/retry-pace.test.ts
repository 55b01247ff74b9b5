import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { createRandom } from '@sluice/testkit/random'
import { describe, expect, test } from 'vitest'
import { REFUSED_MS, RetryPace, retry } from './retry-pace.ts'

const DAY_MS = 86_400_000
const SEEDS = Array.from({ length: 100 }, (_, seed) => seed)

/** Counts the attempts of a day whose connections each last `lastMs` and then fail. */
function attemptsOfADay(random: () => number, lastMs: number): number {
  let nowMs = 0
  const pace = new RetryPace({ clock: { monotonicMs: () => nowMs }, random })
  let attempts = 0
  for (; nowMs < DAY_MS; nowMs += pace.failed()) {
    attempts += 1
    nowMs += lastMs
  }
  return attempts
}

describe('RetryPace', () => {
  test.each([0, 5000, 55_000])('allows at most 300 connections in a day when each lasts %i ms', (lastMs) => {
    for (const seed of SEEDS) expect(attemptsOfADay(createRandom(seed).next, lastMs)).toBeLessThanOrEqual(300)
    expect(attemptsOfADay(() => 0, lastMs)).toBeLessThanOrEqual(300)
  })

  test('tries within 5 s of the end of an outage of less than 30 s', () => {
    for (const seed of SEEDS) {
      let nowMs = 0
      const pace = new RetryPace({ clock: { monotonicMs: () => nowMs }, random: createRandom(seed).next })
      let beforeMs = 0
      while (nowMs < 30_000) {
        beforeMs = nowMs
        nowMs += pace.failed()
        expect(nowMs - beforeMs).toBeLessThanOrEqual(5000)
      }
    }
  })

  test('waits about a third of a long outage, and at most eight minutes', () => {
    let nowMs = 0
    const pace = new RetryPace({ clock: { monotonicMs: () => nowMs }, random: () => 0.999 })
    pace.failed()
    for (const [outageMs, delayMs] of [
      [60_000, 20_000],
      [600_000, 200_000],
      [DAY_MS, 480_000],
    ] as const) {
      nowMs = outageMs
      expect(pace.failed()).toBeCloseTo(delayMs, -3)
    }
  })

  test('is never in step with another one', () => {
    const clock = { monotonicMs: () => 0 }
    const delays = SEEDS.map((seed) => new RetryPace({ clock, random: () => seed / SEEDS.length }).failed())
    expect(new Set(delays).size).toBe(SEEDS.length)
  })

  test('waits at least as long as the platform asked, with jitter', () => {
    const pace = new RetryPace({ clock: testClock() })
    const delayMs = pace.failed(new AppError('rate_limited', 'slow down', { retryAfterSecs: 600 }))
    expect(delayMs).toBeGreaterThanOrEqual(600_000)
    expect(delayMs).toBeLessThanOrEqual(630_000)
  })

  test.each(['forbidden', 'unauthorized'] as const)('tries rarely after %s', (code) => {
    const pace = new RetryPace({ clock: testClock() })
    const delayMs = pace.failed(new AppError(code, 'the token is wrong'))
    expect(delayMs).toBeGreaterThanOrEqual(REFUSED_MS * 0.75)
    expect(delayMs).toBeLessThanOrEqual(REFUSED_MS)
  })

  test('begins again after a reset', () => {
    const pace = new RetryPace({ clock: testClock(), random: () => 1 })
    expect([pace.failed(), pace.failed(), pace.failed(), pace.failed()]).toEqual([1000, 2000, 4000, 4000])
    pace.reset()
    expect([pace.failed(), pace.failures]).toEqual([1000, 1])
  })
})

describe('retry', () => {
  test('repeats a task until it succeeds', async () => {
    const clock = testClock()
    const failures: number[] = []
    let left = 3
    const done = retry(
      async () => {
        if (left-- > 0) throw new Error('not yet')
        return 'done'
      },
      { clock, signal: new AbortController().signal, onFailure: (_, count) => failures.push(count) },
    )
    await clock.advance(10_000)
    expect([await done, failures]).toEqual(['done', [1, 2, 3]])
  })

  test('ends with the error of onFailure, and with nothing after an abort', async () => {
    const clock = testClock()
    const task = () => Promise.reject(new Error('not yet'))
    const fatal = retry(task, {
      clock,
      signal: new AbortController().signal,
      onFailure() {
        throw new Error('never')
      },
    })
    await expect(fatal).rejects.toThrow('never')
    const abort = new AbortController()
    const aborted = retry(task, { clock, signal: abort.signal, onFailure: () => undefined })
    await clock.advance(0)
    abort.abort()
    expect(await aborted).toBeUndefined()
  })
})
