import { AppError } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { askedDelayMs, backoffMs } from './backoff.ts'

describe('backoffMs', () => {
  test('doubles with each failure up to the longest delay, half of it random', () => {
    const limits = { firstMs: 1000, longestMs: 30_000 }
    const delays = (random: number) => [0, 1, 2, 4, 5, 1000].map((failures) => backoffMs(failures, limits, () => random))
    expect(delays(1)).toEqual([1000, 2000, 4000, 16_000, 30_000, 30_000])
    expect(delays(0)).toEqual([500, 1000, 2000, 8000, 15_000, 15_000])
  })

  test('grows by another factor and with full jitter where that is asked for', () => {
    const limits = { firstMs: 5000, longestMs: 1_800_000, factor: 5, fixedShare: 0 }
    expect(backoffMs(2, limits, () => 1)).toBe(125_000)
    expect(backoffMs(2, limits, () => 0)).toBe(0)
  })
})

describe('askedDelayMs', () => {
  test('reads Retry-After from an error, up to the longest delay', () => {
    const error = new AppError('rate_limited', 'slow down', { retryAfterSecs: 20 })
    expect(askedDelayMs(error, 60_000)).toBe(20_000)
    expect(askedDelayMs(error, 5000)).toBe(5000)
    expect(askedDelayMs(new AppError('unavailable', 'away'), 5000)).toBe(0)
    expect(askedDelayMs(new Error('no AppError'), 5000)).toBe(0)
  })
})
