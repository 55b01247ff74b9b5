import { expect, test } from 'vitest'
import { callCostUsd, pricesWith } from './cost.ts'

const call = { provider: 'anthropic', model: 'm', inputTokens: 1_000_000, outputTokens: 0, cacheRead: 600_000, cacheWrite: 300_000 }

test('tokens of the prompt cache have their own prices', () => {
  const m = { input: 10, output: 50, cache_read: 1, cache_write: 12.5 }
  expect(callCostUsd({ m }, call)).toBeCloseTo(0.1 * 10 + 0.6 * 1 + 0.3 * 12.5)
})

test('without prices of their own they cost as much as other input', () => {
  expect(callCostUsd({ m: { input: 10, output: 50 } }, call)).toBeCloseTo(10)
  expect(callCostUsd({}, call)).toBe(0)
})

test('a model without a price counts what [cost] says, and one of this machine nothing', () => {
  const [cost, called] = [
    { prices: {}, unknown_usd_per_million: 7 },
    { provider: 'anthropic', model: 'm' },
  ]
  expect(callCostUsd(pricesWith(cost, called, {}), call)).toBeCloseTo(7)
  expect(callCostUsd(pricesWith({ ...cost, prices: { m: { input: 1, output: 1 } } }, called, {}), call)).toBeCloseTo(1)
  expect(callCostUsd(pricesWith({ prices: {} }, called, {}), call)).toBe(0)
  expect(callCostUsd(pricesWith(cost, called, { base_url: 'http://127.0.0.1:8080/v1' }), call)).toBe(0)
  expect(callCostUsd(pricesWith(cost, { provider: 'ollama', model: 'm' }, undefined), { ...call, provider: 'ollama' })).toBe(0)
})
