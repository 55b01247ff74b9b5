import { AppError, type OfferedModel, type ProviderSettings } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { checkProvider } from './check-provider.ts'

const listed = (...ids: string[]): OfferedModel[] => ids.map((id) => ({ id }))
const chain = (
  offered: (index: number) => Promise<readonly OfferedModel[]> | undefined,
  ...labels: [provider: string, model: string][]
) => ({
  labels: labels.map(([provider, model]) => ({ provider, model })),
  settings: (index: number): ProviderSettings => ({ kind: labels[index]?.[0] ?? '', model: labels[index]?.[1] }),
  offered,
  window: () => ({ tokens: 32_000, source: 'default' as const }),
})

const NO_USAGE = { inputTokens: 0, outputTokens: 0, costUsd: 0 }

describe('checkProvider', () => {
  test('passes an endpoint that lists the model, also under its default tag', async () => {
    expect(await checkProvider(chain(async () => listed('other', 'small'), ['openai', 'small']))).toMatchObject([
      { check: 'provider', status: 'ok' },
    ])
    expect(await checkProvider(chain(async () => listed('small:latest'), ['ollama', 'small']))).toMatchObject([{ status: 'ok' }])
  })

  test.each([
    [4096, 4096, 'warn'],
    [16_384, 32_000, 'warn'],
    [32_768, 32_768, 'ok'],
  ])('judges a model that Ollama loads with %s tokens while %s are expected: %s', async (contextTokens, tokens, status) => {
    const models = chain(async () => [{ id: 'small:latest', contextTokens }], ['ollama', 'small'])
    const [check] = await checkProvider({ ...models, window: () => ({ tokens, source: 'setting' }) })
    expect(check).toMatchObject({ status, ...(status === 'warn' && { fix: expect.stringContaining('OLLAMA_CONTEXT_LENGTH') }) })
  })

  test('warns of a model that the endpoint does not list, with the nearest one', async () => {
    const [check] = await checkProvider(chain(async () => listed('gpt-large', 'gpt-small'), ['openai', 'gpt-smal']))
    expect(check).toMatchObject({ status: 'warn', detail: expect.stringContaining('did you mean gpt-small?') })
  })

  test('fails an endpoint that is down or refuses the key, with its section', async () => {
    const offered = async (index: number): Promise<readonly OfferedModel[]> => {
      throw index === 0 ? new AppError('unavailable', 'it cannot be reached') : new AppError('unauthorized', 'it refuses the key')
    }
    expect(await checkProvider(chain(offered, ['openai', 'a'], ['anthropic', 'b']))).toMatchObject([
      { check: 'provider', status: 'fail', detail: 'openai:a: it cannot be reached', fix: expect.stringContaining('provider base_url') },
      {
        check: 'provider fallback 1',
        status: 'fail',
        detail: 'anthropic:b: it refuses the key',
        fix: expect.stringContaining('fallback[0]'),
      },
    ])
  })

  test.each([
    ['ok', 'ok', 'answers; run `sluice models test`'],
    ['failed', 'fail', 'openai:small: the endpoint has no quota left'],
  ] as const)('reports a short message that ends with %s', async (outcome, status, detail) => {
    const tryText = async () => ({ test: 'text' as const, outcome, detail: 'the endpoint has no quota left', tookMs: 1, usage: NO_USAGE })
    const [check] = await checkProvider(
      chain(async () => listed('small'), ['openai', 'small']),
      { tryText },
    )
    expect(check).toMatchObject({ status, detail: expect.stringContaining(detail) })
  })

  test('sends no message to a model that its endpoint does not list', async () => {
    const tryText = () => Promise.reject(new Error('not meant to be sent'))
    const checks = await checkProvider(
      chain(async () => listed('large'), ['openai', 'small']),
      { tryText },
    )
    expect(checks).toMatchObject([{ status: 'warn', detail: expect.stringContaining('does not list') }])
  })

  test('warns when the message cannot be sent, such as when the budget is used up', async () => {
    const tryText = () => Promise.reject(new AppError('rate_limited', 'Daily budget of 1 USD is used up'))
    const checks = await checkProvider(
      chain(async () => listed('small'), ['openai', 'small']),
      { tryText },
    )
    expect(checks).toMatchObject([{ status: 'warn', detail: 'openai:small: Daily budget of 1 USD is used up' }])
  })

  test('warns of the offline provider', async () => {
    expect(await checkProvider(chain(() => undefined, ['offline', 'default']))).toMatchObject([{ status: 'warn' }])
  })
})
