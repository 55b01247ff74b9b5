import type { LanguageModel, ModelStreamPart, ProviderSettings } from '@sluice/sdk'
import { Secret } from '@sluice/sdk'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openai } from './openai.ts'

let server: ModelServer
beforeEach(async () => {
  server = await startModelServer()
})
afterEach(() => server.close())

const load = (changed: Partial<ProviderSettings> = {}): Promise<LanguageModel> =>
  openai.load({ kind: 'openai', base_url: `${server.url}/v1`, api_key: new Secret(server.apiKey), model: 'small', ...changed }, { fetch })

const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hello' }] }]

async function collect(model: LanguageModel): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = []
  for await (const part of (await model.doStream({ prompt })).stream) parts.push(part)
  return parts
}

it('reads two tool calls in one reply, with arguments in several deltas', async () => {
  const input = { city: 'Oslo', days: [1, 2, 3] }
  server.script({
    text: 'Let me see.',
    toolCalls: [
      { id: 'a', name: 'weather', input },
      { id: 'b', name: 'time', input: {} },
    ],
  })
  const parts = await collect(await load())
  expect(parts.filter((part) => part.type === 'tool-call')).toMatchObject([
    { toolCallId: 'a', toolName: 'weather', input: JSON.stringify(input) },
    { toolCallId: 'b', toolName: 'time', input: '{}' },
  ])
  const deltas = parts.filter((part) => part.type === 'tool-input-delta' && part.id === 'a')
  expect(deltas.length).toBeGreaterThan(1)
})

it('requests usage in streams and reads it from the last chunk', async () => {
  server.script({ text: 'hi', usage: { inputTokens: 12, outputTokens: 34 } })
  const finish = (await collect(await load())).at(-1)
  expect(finish).toMatchObject({ type: 'finish', usage: { inputTokens: { total: 12 }, outputTokens: { total: 34 } } })
  expect(server.requests[0]?.body).toMatchObject({ model: 'small', stream: true, stream_options: { include_usage: true } })
})

it('sends the configured headers and the key', async () => {
  await (await load({ headers: { 'x-team': 'blue' } })).doGenerate({ prompt })
  expect(server.requests[0]?.headers.get('x-team')).toBe('blue')
  expect(server.requests[0]?.headers.get('authorization')).toBe(`Bearer ${server.apiKey}`)
})

it('sends no authorization header without a key', async () => {
  const open = await startModelServer({ apiKey: null })
  await (await load({ base_url: `${open.url}/v1`, api_key: undefined })).doGenerate({ prompt })
  await open.close()
  expect(open.requests[0]?.headers.get('authorization')).toBeNull()
})

it('does not follow a redirect, so the key reaches no other server', async () => {
  server.script({ status: 307, headers: { location: `${server.url}/v1/chat/completions` } })
  await expect((await load()).doGenerate({ prompt })).rejects.toMatchObject({ statusCode: 307, isRetryable: false })
  expect(server.requests).toHaveLength(1)
})

it('reports `length` as the finish reason of a truncated answer', async () => {
  server.script({ text: 'and then', cutShort: true })
  expect((await collect(await load())).at(-1)).toMatchObject({ finishReason: { unified: 'length' } })
})

it('knows which files the models of a service read', () => {
  const own = { kind: 'openai', model: 'm' }
  expect(openai.media?.(own)).toEqual(['image', 'pdf'])
  expect(openai.media?.({ ...own, base_url: 'http://127.0.0.1:8000/v1' })).toEqual([])
})

it('sends an image with its text', async () => {
  const data = { type: 'data' as const, data: new Uint8Array([1, 2, 3]) }
  const content = [
    { type: 'text' as const, text: 'look' },
    { type: 'file' as const, mediaType: 'image/png', data },
  ]
  await (await load()).doGenerate({ prompt: [{ role: 'user', content }] })
  expect(server.requests[0]?.body).toMatchObject({
    messages: [{ content: [{ type: 'text' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,AQID' } }] }],
  })
})
