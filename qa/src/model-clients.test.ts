/** The model server against the clients that the vendors publish: it accepts their requests, and they can read its answers. */
import Anthropic from '@anthropic-ai/sdk'
import { CHAT_DIALECTS, type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import OpenAI from 'openai'
import { afterEach, beforeEach, expect, test } from 'vitest'

let server: ModelServer
beforeEach(async () => {
  server = await startModelServer()
})
afterEach(() => server.close())

const openai = (service = '') =>
  new OpenAI({ baseURL: `${server.url}${service && `/${service}`}/v1`, apiKey: server.apiKey, maxRetries: 0 })
const anthropic = () => new Anthropic({ baseURL: server.url, apiKey: server.apiKey, maxRetries: 0 })

const input = { city: 'Oslo' }
const schema = { type: 'object' as const, properties: { city: { type: 'string' } } }
const call = { id: 'c1', name: 'weather', input }
const hello = [{ role: 'user' as const, content: 'hello' }]
const functionTool = { type: 'function' as const, function: { name: 'weather', parameters: schema } }

test.each(Object.keys(CHAT_DIALECTS))('the client of OpenAI reads chat completions of "%s", whole and streamed', async (service) => {
  const client = openai(service)
  server.script({ text: 'Hi.', toolCalls: [call] }, { text: 'Hi there.', toolCalls: [call] }, { text: 'cut', cutShort: true })
  const whole = await client.chat.completions.create({ model: 'm', messages: hello, tools: [functionTool] })
  const message = { content: 'Hi.', tool_calls: [{ id: 'c1', function: { name: 'weather', arguments: JSON.stringify(input) } }] }
  expect(whole).toMatchObject({ choices: [{ message, finish_reason: 'tool_calls' }], usage: { total_tokens: expect.any(Number) } })
  const streamed = await client.chat.completions.stream({ model: 'm', messages: hello, tools: [functionTool] }).finalChatCompletion()
  expect(streamed.choices[0]).toMatchObject({ message: { ...message, content: 'Hi there.' }, finish_reason: 'tool_calls' })
  const cut = await client.chat.completions.create({ model: 'm', messages: hello })
  expect(cut.choices[0]).toMatchObject({ finish_reason: 'length' })
})

test('the client of OpenAI reads responses, whole and streamed', async () => {
  const client = openai()
  server.script({ text: 'Hi.', toolCalls: [call] }, { text: 'Hi there.' }, { text: 'cut', cutShort: true })
  const whole = await client.responses.create({
    model: 'm',
    input: 'hello',
    store: false,
    tools: [{ type: 'function', name: 'weather', parameters: schema, strict: false }],
  })
  const called = { type: 'function_call', call_id: 'c1', name: 'weather', arguments: JSON.stringify(input) }
  expect(whole).toMatchObject({
    status: 'completed',
    output_text: 'Hi.',
    output: expect.arrayContaining([expect.objectContaining(called)]),
  })
  const streamed = await client.responses.stream({ model: 'm', input: 'hello', store: false }).finalResponse()
  expect(streamed).toMatchObject({ status: 'completed', output_text: 'Hi there.' })
  const cut = await client.responses.create({ model: 'm', input: 'hello', store: false })
  expect(cut).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
})

test('the client of Anthropic reads messages, whole and streamed', async () => {
  const client = anthropic()
  const request = { model: 'm', max_tokens: 100, messages: hello, tools: [{ name: 'weather', input_schema: schema }] }
  server.script({ text: 'Hi.', toolCalls: [call] }, { text: 'Hi there.', toolCalls: [call] }, { text: 'cut', cutShort: true })
  const use = { type: 'tool_use', id: 'c1', name: 'weather', input }
  expect(await client.messages.create(request)).toMatchObject({ content: [{ text: 'Hi.' }, use], stop_reason: 'tool_use' })
  expect(await client.messages.stream(request).finalMessage()).toMatchObject({
    content: [{ text: 'Hi there.' }, use],
    stop_reason: 'tool_use',
  })
  expect(await client.messages.create(request)).toMatchObject({ stop_reason: 'max_tokens' })
})

test('the clients recognise refusals', async () => {
  server.script({ status: 429, headers: { 'retry-after': '3' } }, { status: 529 }, { status: 404 })
  await expect(openai().chat.completions.create({ model: 'm', messages: hello })).rejects.toBeInstanceOf(OpenAI.RateLimitError)
  await expect(anthropic().messages.create({ model: 'm', max_tokens: 9, messages: hello })).rejects.toMatchObject({
    status: 529,
    error: { error: { type: expect.any(String) } },
  })
  await expect(openai('groq').chat.completions.create({ model: 'm', messages: hello })).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  const stranger = new Anthropic({ baseURL: server.url, apiKey: 'wrong', maxRetries: 0 })
  await expect(stranger.messages.create({ model: 'm', max_tokens: 9, messages: hello })).rejects.toBeInstanceOf(
    Anthropic.AuthenticationError,
  )
})
