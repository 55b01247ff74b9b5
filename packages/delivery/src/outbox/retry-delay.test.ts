import { describe, expect, test } from 'vitest'
import { awayDelayMs, retryDelayMs } from './retry-delay.ts'

describe('retryDelayMs', () => {
  test('is random up to 5 s, 25 s, 125 s, 625 s and at most half an hour', () => {
    const longest = (attempts: number) => retryDelayMs(attempts, undefined, () => 1)
    expect([1, 2, 3, 4, 5, 50].map(longest)).toEqual([5000, 25_000, 125_000, 625_000, 1_800_000, 1_800_000])
    expect(retryDelayMs(3, undefined, () => 0)).toBe(0)
  })

  test('is at least a Retry-After, up to a day', () => {
    expect(retryDelayMs(1, 60, () => 0)).toBe(60_000)
    expect(retryDelayMs(1, 7200, () => 0)).toBe(7_200_000)
    expect(retryDelayMs(4, 1, () => 0.9)).toBe(562_500)
    expect(retryDelayMs(4, 0, () => 0.9)).toBe(562_500)
    expect(retryDelayMs(1, 10_000_000, () => 0)).toBe(86_400_000)
  })
})

describe('awayDelayMs', () => {
  test('grows with the age of the row, from one second to half a minute', () => {
    const longest = (ageMs: number) => awayDelayMs(ageMs, 0, () => 1)
    expect([0, 2000, 10_000, 60_000, 86_400_000].map(longest)).toEqual([1000, 1000, 5000, 30_000, 30_000])
    expect(awayDelayMs(60_000, 0, () => 0)).toBe(15_000)
    expect(awayDelayMs(60_000, 120, () => 0)).toBe(120_000)
  })
})
