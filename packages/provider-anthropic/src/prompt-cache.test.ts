import type { ModelPrompt, ProviderSettings } from '@sluice/sdk'
import { Secret } from '@sluice/sdk'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { anthropic } from './anthropic.ts'

let server: ModelServer
beforeEach(async () => {
  server = await startModelServer()
})
afterEach(() => server.close())

const load = (more: Partial<ProviderSettings> = {}) =>
  anthropic.load(
    { kind: 'anthropic', base_url: `${server.url}/v1`, api_key: new Secret(server.apiKey), model: 'small', ...more },
    { fetch },
  )

const conversation: ModelPrompt = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: [{ type: 'text', text: 'hello' }] },
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} }] },
  {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'look', output: { type: 'text', value: 'seen' } }],
  },
]
const mark = { cache_control: { type: 'ephemeral' } }

it('marks the system prompt and the newest message, and no other', async () => {
  await (await load()).doGenerate({ prompt: conversation })
  const body = server.requests[0]?.body as { messages: { content: object[] }[] }
  expect(body).toMatchObject({ system: [mark] })
  expect(body.messages.at(-1)?.content.at(-1)).toMatchObject({ type: 'tool_result', ...mark })
  expect(JSON.stringify(body).split('cache_control')).toHaveLength(3)
})

it('marks nothing with prompt_cache = false', async () => {
  await (await load({ prompt_cache: false })).doGenerate({ prompt: conversation })
  expect(JSON.stringify(server.requests[0]?.body)).not.toContain('cache_control')
})

it('counts the tokens of the cache apart', async () => {
  const usage = { input_tokens: 5, cache_read_input_tokens: 100, cache_creation_input_tokens: 20, output_tokens: 3 }
  const content = [{ type: 'text', text: 'hi' }]
  const message = {
    type: 'message',
    id: 'm',
    role: 'assistant',
    model: 'small',
    content,
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  }
  server.script({ status: 200, body: message })
  expect((await (await load()).doGenerate({ prompt: conversation })).usage).toMatchObject({
    inputTokens: { total: 125, cacheRead: 100, cacheWrite: 20 },
  })
})
