import { expect, it } from 'vitest'
import { listModels } from './list-models.ts'
import { modelEndpoint } from './model-endpoint.ts'

const { signal } = new AbortController()

/** Lists the models of an endpoint that answers with these pages, one after another; also returns the requested addresses. */
async function listing(...pages: unknown[]) {
  const asked: string[] = []
  const answer: typeof fetch = async (url) => {
    asked.push(String(url))
    return Response.json(pages[asked.length - 1])
  }
  const endpoint = modelEndpoint({ kind: 'openai', model: 'none' }, { baseUrl: 'https://models.example/v1', fetch: answer })
  return { models: await listModels(endpoint, { headers: {}, query: '?limit=2', signal }), asked }
}

it.each([
  ['OpenRouter', { context_length: 200_000, pricing: { prompt: '0.000001', completion: '0.000005' } }, 200_000, { input: 1, output: 5 }],
  ['OpenRouter where the price varies', { context_length: 8192, pricing: { prompt: '-1', completion: '-1' } }, 8192, undefined],
  ['Together', { context_length: 131_072, pricing: { input: 0.88, output: 0.9 } }, 131_072, { input: 0.88, output: 0.9 }],
  ['Groq', { context_window: 131_072 }, 131_072, undefined],
  ['Mistral', { max_context_length: 32_768 }, 32_768, undefined],
  ['vLLM', { max_model_len: 4096 }, 4096, undefined],
  ['Anthropic', { max_input_tokens: 1_000_000 }, 1_000_000, undefined],
  ['llama.cpp', { meta: { n_ctx_train: 40_960 } }, 40_960, undefined],
  ['OpenAI', {}, undefined, undefined],
])('reads the window and the price in the list of %s', async (_service, members, contextTokens, price) => {
  expect((await listing({ data: [{ id: 'a', ...members }] })).models).toEqual([
    { id: 'a', ...(contextTokens !== undefined && { contextTokens }), ...(price && { price }) },
  ])
})

it('reads a list without an object around it, and leaves out entries without an id', async () => {
  expect((await listing([{ id: 'a' }, {}, null, { id: 'b' }])).models.map(({ id }) => id)).toEqual(['a', 'b'])
})

it('follows the pages of a list to their end', async () => {
  const { models, asked } = await listing(
    { data: [{ id: 'a' }, { id: 'b' }], has_more: true, last_id: 'b' },
    { data: [{ id: 'c' }], has_more: false, last_id: 'c' },
  )
  expect(models.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  expect(asked).toEqual(['https://models.example/v1/models?limit=2', 'https://models.example/v1/models?limit=2&after_id=b'])
})

it('reads the list of Google', async () => {
  const { models, asked } = await listing(
    { models: [{ name: 'models/gemini-a', inputTokenLimit: 8192, supportedGenerationMethods: ['generateContent'] }], nextPageToken: 'p2' },
    { models: [{ name: 'models/embedding', supportedGenerationMethods: ['embedContent'] }, { name: 'models/gemini-b' }] },
  )
  expect(models).toEqual([{ id: 'gemini-a', contextTokens: 8192 }, { id: 'gemini-b' }])
  expect(asked[1]).toBe('https://models.example/v1/models?limit=2&pageToken=p2')
})

it('ends a list whose pages repeat themselves', async () => {
  const page = { data: [{ id: 'a' }], has_more: true, last_id: 'a' }
  const { models, asked } = await listing(page, page, page)
  expect(models).toEqual([{ id: 'a' }])
  expect(asked).toHaveLength(2)
})

it('refuses an answer other than a list', async () => {
  await expect(listing({ entries: [] })).rejects.toMatchObject({ code: 'upstream' })
})
