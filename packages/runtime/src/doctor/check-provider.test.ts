import { AppError, type OfferedModel } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { checkProvider } from './check-provider.ts'

const listed = (...ids: string[]): OfferedModel[] => ids.map((id) => ({ id }))
const chain = (
  offered: (index: number) => Promise<readonly OfferedModel[]> | undefined,
  ...labels: [provider: string, model: string][]
) => ({
  labels: labels.map(([provider, model]) => ({ provider, model })),
  offered,
})

describe('checkProvider', () => {
  test('passes an endpoint that lists the model, also under its default tag', async () => {
    expect(await checkProvider(chain(async () => listed('other', 'small'), ['openai', 'small']))).toMatchObject([
      { check: 'provider', status: 'ok' },
    ])
    expect(await checkProvider(chain(async () => listed('small:latest'), ['ollama', 'small']))).toMatchObject([{ status: 'ok' }])
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

  test('warns of the offline provider', async () => {
    expect(await checkProvider(chain(() => undefined, ['offline', 'default']))).toMatchObject([{ status: 'warn' }])
  })
})
