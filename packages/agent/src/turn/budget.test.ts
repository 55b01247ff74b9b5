import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { Budget } from './budget.ts'
import { callCostUsd } from './cost.ts'

const NOON = Date.UTC(2026, 0, 31, 12)
const limits = (daily?: number, monthly?: number) => ({ prices: {}, daily_limit_usd: daily, monthly_limit_usd: monthly })

function budget(spentUsd: (sinceMs: number) => Promise<number>) {
  const clock = testClock(NOON)
  return { clock, budget: new Budget({ spentUsd }, clock) }
}

test('a spent day limit refuses until the next day in UTC', async () => {
  const { budget: subject } = budget(async (since) => (since === Date.UTC(2026, 0, 31) ? 1 : 100))
  await subject.check(limits(2))
  subject.add(1)
  await expect(subject.check(limits(2))).rejects.toMatchObject({
    code: 'rate_limited',
    message: 'Daily budget of 2 USD is used up',
    retryAfterSecs: 12 * 3600,
  })
})

test('a spent month limit refuses until the next month', async () => {
  const { budget: subject } = budget(async (since) => (since === Date.UTC(2026, 0, 1) ? 5 : 0))
  await expect(subject.check(limits(1, 5))).rejects.toMatchObject({
    message: 'Monthly budget of 5 USD is used up',
    retryAfterSecs: 12 * 3600,
  })
})

test('a limit that is reached is reported once, and again when it is another or in the next day', async () => {
  const clock = testClock(NOON)
  const reported: unknown[] = []
  const subject = new Budget({ spentUsd: async () => 5 }, clock, { events: { emit: (event) => reported.push(event) } })
  const check = (daily: number) => subject.check(limits(daily)).catch(() => {})
  for (let times = 0; times < 2; times++) for (const daily of [2, 3, 9]) await check(daily)
  await clock.advance(12 * 3_600_000)
  await check(2)
  const spent = (limit_usd: number, until: string) => ({ type: 'budget_spent', period: 'day', limit_usd, until })
  expect(reported).toEqual([
    spent(2, '2026-02-01T00:00:00.000Z'),
    spent(3, '2026-02-01T00:00:00.000Z'),
    spent(2, '2026-02-02T00:00:00.000Z'),
  ])
})

test('a new day begins with the spending in the store', async () => {
  const { budget: subject, clock } = budget(async (since) => (since === Date.UTC(2026, 1, 1) ? 0.25 : 0))
  await subject.check(limits(1))
  subject.add(1)
  await clock.advance(12 * 3_600_000)
  await subject.check(limits(1))
  subject.add(0.75)
  await expect(subject.check(limits(1))).rejects.toMatchObject({ code: 'rate_limited' })
})

test('the store is read once a period, and never without limits', async () => {
  let asked = 0
  const { budget: subject } = budget(async () => {
    asked++
    return 0
  })
  await subject.check(limits())
  expect(asked).toBe(0)
  await Promise.all([subject.check(limits(1, 1)), subject.check(limits(1, 1))])
  await subject.check(limits(1, 1))
  expect(asked).toBe(2)
})

test('a store that cannot be read fails the check and is read again', async () => {
  let fails = true
  const { budget: subject } = budget(async () => (fails ? Promise.reject(new Error('disk')) : 0))
  await expect(subject.check(limits(1))).rejects.toThrow('disk')
  fails = false
  await subject.check(limits(1))
})

test('a price is found by provider and model, by model, or by the last part of the model', () => {
  const prices = {
    'openai/big': { input: 1, output: 2 },
    big: { input: 10, output: 20 },
    tiny: { input: 100, output: 200 },
  }
  const cost = (provider: string, model: string) => callCostUsd(prices, { provider, model, inputTokens: 1_000_000, outputTokens: 500_000 })
  expect(cost('openai', 'big')).toBe(2)
  expect(cost('other', 'big')).toBe(20)
  expect(cost('other', 'vendor/tiny')).toBe(200)
  expect(cost('other', 'unknown')).toBe(0)
  expect(cost('other', 'constructor')).toBe(0)
})

test('where others spend too, the store is read again after a while, and turns that have not ended count on top', async () => {
  const clock = testClock(NOON)
  let stored = 0
  let reads = 0
  const subject = new Budget(
    {
      spentUsd: async () => {
        reads++
        return stored
      },
    },
    clock,
    { freshMs: 2000 },
  )
  await subject.check(limits(2))
  subject.add(0.5, 't1')
  subject.add(0.25, 't2')
  await subject.check(limits(2))
  expect(reads).toBe(1)
  // The first turn has ended and is in the store, with one of another node.
  stored = 0.5 + 1.2
  subject.ended('t1')
  await subject.check(limits(2))
  await clock.advance(2000)
  await subject.check(limits(2))
  expect(reads).toBe(2)
  subject.add(0.05, 't2')
  await expect(subject.check(limits(2))).rejects.toMatchObject({ code: 'rate_limited' })
})
