import { expect, test } from 'vitest'
import { callCostUsd } from './cost.ts'

const call = { provider: 'anthropic', model: 'm', inputTokens: 1_000_000, outputTokens: 0, cacheRead: 600_000, cacheWrite: 300_000 }

test('tokens of the prompt cache have their own prices', () => {
  const m = { input: 10, output: 50, cache_read: 1, cache_write: 12.5 }
  expect(callCostUsd({ m }, call)).toBeCloseTo(0.1 * 10 + 0.6 * 1 + 0.3 * 12.5)
})

test('without prices of their own they cost as much as other input', () => {
  expect(callCostUsd({ m: { input: 10, output: 50 } }, call)).toBeCloseTo(10)
  expect(callCostUsd({}, call)).toBe(0)
})
