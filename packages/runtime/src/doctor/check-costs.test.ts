import { expect, test } from 'vitest'
import { checkCosts } from './check-costs.ts'

/** The rows for one model, with these settings of `[cost]`. */
function rows(cost: object, { kind = 'openai', base_url }: { readonly kind?: string; readonly base_url?: string } = {}) {
  const models = { labels: [{ provider: kind, model: 'm' }], settings: () => ({ kind, ...(base_url !== undefined && { base_url }) }) }
  const registries = new Map([
    ['main', { models }],
    ['other', { models }],
  ])
  return checkCosts({ config: { core: () => ({ prices: {}, ...cost }) }, registries } as unknown as Parameters<typeof checkCosts>[0])
}

test('a model without a price is a failed row once a limit in dollars is set, and one row for all agents', () => {
  expect(rows({})).toEqual([])
  expect(rows({ daily_limit_usd: 1 })).toEqual([
    {
      check: 'prices',
      status: 'fail',
      detail: 'openai/m has no price, so that daily_limit_usd of [cost] never ends its turns',
      fix: 'add [cost.prices."openai/m"] with input and output, in US dollars for a million tokens',
    },
  ])
  expect(rows({ daily_limit_usd: 1, monthly_limit_usd: 5 })[0]?.detail).toContain('daily_limit_usd and monthly_limit_usd of')
})

test('a model with a price needs none, and one of this machine may do without', () => {
  expect(rows({ daily_limit_usd: 1, prices: { m: { input: 1, output: 1 } } })).toEqual([])
  for (const settings of [{ kind: 'ollama' }, { base_url: 'http://127.0.0.1:8080/v1' }, { base_url: 'http://localhost/v1' }])
    expect(rows({ daily_limit_usd: 1 }, settings)).toMatchObject([{ status: 'ok' }])
})

test('[cost] unknown says what a model without a price means', () => {
  expect(rows({ daily_limit_usd: 1, unknown_usd_per_million: 5 })).toMatchObject([
    { status: 'ok', detail: expect.stringContaining('counts 5') },
  ])
  expect(rows({ daily_limit_usd: 1, unknown_usd_per_million: 5, unknown: 'refuse' })).toMatchObject([
    { status: 'fail', detail: expect.stringContaining('refuses its turns') },
  ])
})
