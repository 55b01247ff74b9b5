import { type LanguageModel, type ModelMessage, type ModelStreamPart, type ProviderSettings, Secret } from '@sluice/sdk'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { anthropic } from './anthropic.ts'

let server: ModelServer
beforeEach(async () => {
  server = await startModelServer()
})
afterEach(() => server.close())

const load = (changed: Partial<ProviderSettings> = {}): Promise<LanguageModel> => {
  const settings = { kind: 'anthropic', base_url: `${server.url}/v1`, api_key: new Secret(server.apiKey), model: 'claude-haiku-5-5' }
  return anthropic.load({ ...settings, ...changed }, { fetch })
}

const hello: ModelMessage = { role: 'user', content: [{ type: 'text', text: 'hello' }] }

async function collect(model: LanguageModel, ...prompt: ModelMessage[]): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = []
  for await (const part of (await model.doStream({ prompt })).stream) parts.push(part)
  return parts
}

it('reads two tool calls in one reply and returns both results in one message', async () => {
  const input = { city: 'Oslo', days: [1, 2, 3] }
  server.script({
    text: 'Let me see.',
    toolCalls: [
      { id: 'a', name: 'weather', input },
      { id: 'b', name: 'time', input: {} },
    ],
  })
  const model = await load()
  const parts = await collect(model, hello)
  const calls = parts.filter((part) => part.type === 'tool-call')
  expect(calls).toMatchObject([
    { toolCallId: 'a', toolName: 'weather', input: JSON.stringify(input) },
    { toolCallId: 'b', toolName: 'time', input: '{}' },
  ])
  expect(parts.filter((part) => part.type === 'tool-input-delta' && part.id === 'a').length).toBeGreaterThan(1)

  const callParts = calls.map(({ toolCallId, toolName, input: json }) => ({
    type: 'tool-call' as const,
    toolCallId,
    toolName,
    input: JSON.parse(json),
  }))
  const results = calls.map(({ toolCallId, toolName }) => ({
    type: 'tool-result' as const,
    toolCallId,
    toolName,
    output: { type: 'error-text' as const, value: 'no idea' },
  }))
  await collect(model, hello, { role: 'assistant', content: callParts }, { role: 'tool', content: results })
  expect(server.requests[1]).toMatchObject({
    refused: null,
    body: { messages: [{}, {}, { role: 'user', content: [{}, { is_error: true }] }] },
  })
})

it('combines the usage from the start and the end of a stream', async () => {
  server.script({ text: 'hi', usage: { inputTokens: 12, outputTokens: 34 } })
  const finish = (await collect(await load(), hello)).at(-1)
  expect(finish).toMatchObject({ type: 'finish', usage: { inputTokens: { total: 12 }, outputTokens: { total: 34 } } })
})

it('sends the configured key and headers, and no key from the environment', async () => {
  await (await load({ headers: { 'x-team': 'blue' } })).doGenerate({ prompt: [hello] })
  const headers = server.requests[0]?.headers
  expect([headers?.get('x-team'), headers?.get('x-api-key'), headers?.get('authorization')]).toEqual(['blue', server.apiKey, null])
})

it('does not follow a redirect, so the key reaches no other server', async () => {
  server.script({ status: 307, headers: { location: `${server.url}/v1/messages` } })
  await expect((await load()).doGenerate({ prompt: [hello] })).rejects.toMatchObject({ statusCode: 307, isRetryable: false })
  expect(server.requests).toHaveLength(1)
})

it('marks status 529 (overloaded) as retryable', async () => {
  server.script({ status: 529 })
  await expect((await load()).doGenerate({ prompt: [hello] })).rejects.toMatchObject({ statusCode: 529, isRetryable: true })
})

it('reports `length` as the finish reason of a truncated answer', async () => {
  server.script({ text: 'and then', cutShort: true })
  expect((await collect(await load(), hello)).at(-1)).toMatchObject({ finishReason: { unified: 'length' } })
})

it('adds the version of the API to the root of Anthropic', async () => {
  const urls: string[] = []
  const recording: typeof fetch = async (url) => {
    urls.push(String(url))
    return new Response('{}', { status: 400 })
  }
  const settings = { kind: 'anthropic', base_url: 'https://api.anthropic.com/', api_key: new Secret('key'), model: 'claude-haiku-5-5' }
  const model = await anthropic.load(settings, { fetch: recording })
  await expect(model.doGenerate({ prompt: [hello] })).rejects.toMatchObject({ statusCode: 400 })
  expect(urls).toEqual(['https://api.anthropic.com/v1/messages'])
})
