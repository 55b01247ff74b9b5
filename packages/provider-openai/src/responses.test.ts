import type { LanguageModel, ModelPrompt } from '@sluice/sdk'
import { promptCacheKey, Secret } from '@sluice/sdk'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { chatCompletions } from './chat-completions.ts'
import { openai } from './openai.ts'
import { PRESETS } from './presets.ts'
import { collect, deltas, hello } from './testing.ts'

let server: ModelServer
let model: LanguageModel
beforeEach(async () => {
  server = await startModelServer()
  // The server takes the place of OpenAI itself.
  const toServer: typeof fetch = (input, init) => fetch(String(input).replace('https://api.openai.com', server.url), init)
  model = await openai.load({ kind: 'openai', api_key: new Secret(server.apiKey), model: 'gpt-5.6' }, { fetch: toServer })
})
afterEach(() => server.close())

const tools = [{ type: 'function' as const, name: 'look', inputSchema: { type: 'object' as const, properties: {} } }]
const last = () => server.requests.at(-1)

it('asks the Responses API at the own URL of OpenAI, which keeps nothing', async () => {
  const { content, finishReason } = await model.doGenerate({ prompt: hello, tools, maxOutputTokens: 50 })
  expect(content).toMatchObject([{ type: 'text', text: 'You said: hello' }])
  expect(finishReason.unified).toBe('stop')
  expect(last()).toMatchObject({ wire: 'responses', refused: null, body: { store: false, max_output_tokens: 50 } })
})

it('names the conversation for the prompt cache of the service', async () => {
  await model.doGenerate({ prompt: hello, providerOptions: promptCacheKey('room/1') })
  await model.doGenerate({ prompt: hello })
  const keys = server.requests.map(({ body }) => (body as { prompt_cache_key?: string }).prompt_cache_key)
  expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), undefined])
})

it('streams text and reasoning, and counts tokens', async () => {
  server.script({ thinking: 'Hm, let me see.', text: 'one two', usage: { inputTokens: 12, outputTokens: 34 } })
  const parts = await collect(model)
  expect([deltas(parts, 'reasoning-delta'), deltas(parts, 'text-delta')]).toEqual(['Hm, let me see.', 'one two'])
  expect(parts.at(-1)).toMatchObject({ type: 'finish', usage: { inputTokens: { total: 12 }, outputTokens: { total: 34 } } })
})

it('sends encrypted reasoning and tool calls back with their results', async () => {
  server.script({ thinking: 'I have to look.', toolCalls: [{ id: 'call_1', name: 'look', input: { at: 'it' } }] }, { text: 'seen' })
  const { content } = await model.doGenerate({ prompt: hello, tools })
  const kept = content.flatMap((part): Extract<ModelPrompt[number], { role: 'assistant' }>['content'] => {
    const providerOptions = part.providerMetadata && { providerOptions: part.providerMetadata }
    if (part.type === 'reasoning') return [{ type: 'reasoning', text: part.text, ...providerOptions }]
    if (part.type !== 'tool-call') return []
    return [{ type: 'tool-call', toolCallId: part.toolCallId, toolName: part.toolName, input: JSON.parse(part.input), ...providerOptions }]
  })
  const result: ModelPrompt[number] = {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: 'call_1', toolName: 'look', output: { type: 'text', value: 'a cat' } }],
  }
  await model.doGenerate({ prompt: [...hello, { role: 'assistant', content: kept }, result], tools })
  expect(last()?.refused).toBeNull()
  expect(last()?.body).toMatchObject({
    input: [
      { role: 'user' },
      { type: 'reasoning', encrypted_content: 'encrypted-1', summary: [{ text: 'I have to look.' }] },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":"it"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'a cat' },
    ],
  })
})

it('reports a reply that the output limit cuts', async () => {
  server.script({ text: 'and then', cutShort: true }, { text: 'and then', cutShort: true })
  expect((await collect(model)).at(-1)).toMatchObject({ finishReason: { unified: 'length' } })
  expect((await model.doGenerate({ prompt: hello })).finishReason.unified).toBe('length')
})

const message = (content: object[]) => ({ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content })
const said = (text: string, annotations: object[] = []) => ({ type: 'output_text', text, annotations })
/** The frames of a stream with these items before or around a text. */
const stream = (...items: object[]) => [
  { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
  ...items.flatMap((item, output_index) => [
    { type: 'response.output_item.added', output_index, item },
    ...((item as { type: string }).type === 'message'
      ? [
          { type: 'response.output_text.delta', item_id: 'msg_1', output_index, content_index: 0, delta: 'fine' },
          { type: 'response.output_text.annotation.added', item_id: 'msg_1', annotation: { type: 'dream_citation' } },
        ]
      : []),
    { type: 'response.output_item.done', output_index, item },
  ]),
  { type: 'response.completed', response: { usage: { input_tokens: 3, output_tokens: 4 } } },
]

// https://platform.openai.com/docs/api-reference/backward-compatibility
it.each<[string, object[]]>([
  ['an item', [{ type: 'hologram', id: 'h' }, message([said('fine')])]],
  ['a part', [message([said('fine'), { type: 'hologram' }])]],
  ['an annotation', [message([said('fine', [{ type: 'dream_citation' }])])]],
  [
    'an action of a tool of the service',
    [{ type: 'web_search_call', id: 'w', status: 'completed', action: { type: 'dream' } }, message([said('fine')])],
  ],
])('%s of an unknown type does not end a reply', async (_what, output) => {
  const body = { id: 'r', object: 'response', created_at: 1, model: 'm', output, usage: { input_tokens: 3, output_tokens: 4 } }
  server.script({ status: 200, body })
  expect(await model.doGenerate({ prompt: hello })).toMatchObject({ content: [{ type: 'text', text: 'fine' }] })
  for (const pieceBytes of [undefined, 1, 13]) {
    server.script({ frames: stream(...output), ...(pieceBytes && { pieceBytes }) })
    const parts = await collect(model)
    expect([deltas(parts, 'text-delta'), parts.at(-1)]).toMatchObject(['fine', { finishReason: { unified: 'stop' } }])
  }
})

it('distinguishes a refusal from a reply that the content filter cuts', async () => {
  const body = (output: object[], reason?: string) => ({
    status: 200,
    body: {
      id: 'r',
      created_at: 1,
      model: 'm',
      output,
      usage: { input_tokens: 3, output_tokens: 4 },
      incomplete_details: reason && { reason },
    },
  })
  const refusal = { type: 'refusal', refusal: 'No.' }
  server.script(body([message([refusal])]), body([message([said('No')])], 'content_filter'))
  const generate = async () => (await model.doGenerate({ prompt: hello })).finishReason
  expect(await generate()).toEqual({ unified: 'content-filter', raw: 'refusal' })
  expect(await generate()).toEqual({ unified: 'content-filter', raw: 'content_filter' })
  const item = message([])
  server.script({
    frames: [
      { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.refusal.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'No.' },
      { type: 'response.refusal.done', item_id: 'msg_1', output_index: 0, content_index: 0, refusal: 'No.' },
      { type: 'response.output_item.done', output_index: 0, item: message([refusal]) },
      { type: 'response.completed', response: { usage: { input_tokens: 3, output_tokens: 4 } } },
    ],
  })
  const parts = await collect(model)
  expect([deltas(parts, 'text-delta'), parts.at(-1)]).toMatchObject([
    'No.',
    { finishReason: { unified: 'content-filter', raw: 'refusal' } },
  ])
})

it('ignores events of unknown types and reports a failed response', async () => {
  const created = { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } }
  const failed = {
    type: 'response.failed',
    sequence_number: 2,
    response: { error: { code: 'server_error', message: 'Sorry' }, usage: null, incomplete_details: null },
  }
  server.script({ frames: [created, { type: 'response.dreaming', depth: 2 }, failed] })
  const parts = await collect(model).catch((error: unknown) => [error])
  expect(JSON.stringify(parts)).toContain('server_error')
  expect(JSON.stringify(parts)).not.toContain('dreaming')
})

it.each([
  ['azure', 'https://mine.openai.azure.com/openai/v1', 'responses'],
  ['bedrock', 'https://bedrock-mantle.us-east-2.api.aws/openai/v1/', 'responses'],
  ['bedrock', 'https://bedrock-mantle.us-east-2.api.aws/v1', 'openai'],
])('%s at %s speaks %s', async (kind, base_url, wire) => {
  const toServer: typeof fetch = (input, init) => fetch(server.url + new URL(String(input)).pathname.replace('/openai', ''), init)
  const provider = chatCompletions(kind, PRESETS[kind as keyof typeof PRESETS])
  const other = await provider.load({ kind, base_url, api_key: new Secret(server.apiKey), model: 'm' }, { fetch: toServer })
  await other.doGenerate({ prompt: hello })
  expect(last()?.wire).toBe(wire)
})

it.each([
  ['https://eu.api.openai.com/v1', 'responses'],
  ['https://api.openai.com.evil.example/v1', 'openai'],
  ['http://127.0.0.1:9/v1', 'openai'],
])('%s speaks %s', async (base_url, wire) => {
  const toServer: typeof fetch = (input, init) => fetch(server.url + new URL(String(input)).pathname, init)
  const other = await openai.load({ kind: 'openai', base_url, api_key: new Secret(server.apiKey), model: 'm' }, { fetch: toServer })
  await other.doGenerate({ prompt: hello })
  expect(last()?.wire).toBe(wire)
})
