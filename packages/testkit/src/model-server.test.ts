import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ModelServer, startModelServer, TEST_API_KEY } from './model-server.ts'

let server: ModelServer
beforeEach(async () => {
  server = await startModelServer()
})
afterEach(() => server.close())

const weather = { type: 'object', properties: { city: { type: 'string' } } }

const protocols = {
  openai: {
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${TEST_API_KEY}` },
    body: {
      model: 'm',
      messages: [{ role: 'user', content: 'hello there' }],
      tools: [{ type: 'function', function: { name: 'weather', parameters: weather } }],
    },
    called: { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } }] },
    result: (id: string) => ({ role: 'tool', tool_call_id: id, content: 'sunny' }),
  },
  anthropic: {
    path: '/v1/messages',
    headers: { 'x-api-key': TEST_API_KEY, 'anthropic-version': '2023-06-01' },
    body: {
      model: 'm',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'hello there' }],
      tools: [{ name: 'weather', input_schema: weather }],
    },
    called: { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'weather', input: {} }] },
    result: (id: string) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'sunny' }] }),
  },
}

describe.each(Object.entries(protocols))('%s', (name, { path, headers, body, called, result }) => {
  const post = (changed: object = {}, more: Record<string, string> = {}) =>
    fetch(server.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers, ...more },
      body: JSON.stringify({ ...body, ...changed }),
    })
  const talk = (...messages: object[]) => post({ messages: [...body.messages, ...messages] })

  it('plays the script, then echoes, and records each request', async () => {
    server.script({ text: 'one two' })
    expect(JSON.stringify(await (await post()).json())).toContain('one two')
    expect(JSON.stringify(await (await post()).json())).toContain('You said: hello there')
    expect(server.requests).toMatchObject([{ wire: name, body, lastUserText: 'hello there', refused: null }, {}])
    expect(await server.requests[0]?.ended).toBe('answered')
  })

  it('streams complete server-sent events', async () => {
    server.script({ text: 'one two', toolCalls: [{ name: 'weather', input: { city: 'Oslo' } }] })
    const response = await post({ stream: true })
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const data = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, json = '']) => json).filter((json) => json !== '[DONE]')
    expect(data.length).toBeGreaterThan(6)
    for (const json of data) JSON.parse(json)
  })

  it.each<[why: string, status: number, send: () => Promise<Response>]>([
    ['no key', 401, () => post({}, { authorization: '', 'x-api-key': '' })],
    ['another key', 401, () => post({}, { authorization: 'Bearer no', 'x-api-key': 'no' })],
    ['no JSON type', 400, () => post({}, { 'content-type': 'text/plain' })],
    ['no messages', 400, () => post({ messages: [] })],
    ['an unknown role', 400, () => talk({ role: 'robot', content: 'x' })],
    ['no model', 400, () => post({ model: '' })],
    ['a tool without schema', 400, () => post({ tools: [{ type: 'function', name: 'x', function: { name: 'x' } }] })],
    ['a call without result', 400, () => talk(called)],
    ['a call answered too late', 400, () => talk(called, { role: 'user', content: 'and?' }, result('c1'))],
    ['a result without call', 400, () => talk(result('c1'))],
    ['an unknown member', 400, () => post({ invented_later: true })],
    ['a result of another call', 400, () => talk(called, result('c2'))],
  ])('refuses %s with %i', async (_why, status, send) => {
    const response = await send()
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ error: { message: expect.any(String), type: expect.any(String) } })
    expect(server.requests[0]?.refused).toEqual(expect.any(String))
  })

  it('accepts a tool call followed by its result', async () => {
    expect((await talk(called, result('c1'))).status).toBe(200)
  })

  it('plays faults: status, reset, garbage and a broken stream', async () => {
    server.script({ status: 429, headers: { 'retry-after': '3' } }, { fault: 'reset' }, { fault: 'garbage' })
    const refused = await post()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3'])
    await expect(post()).rejects.toThrow('fetch failed')
    await expect((await post()).json()).rejects.toThrow(SyntaxError)

    server.script({ text: 'one two three', breakAfter: 2 }, { fault: 'hang' })
    await expect((await post({ stream: true })).text()).rejects.toThrow('terminated')
    expect(await server.requests[3]?.ended).toBe('broken')
  })

  it('close ends a hanging request', async () => {
    server.script({ fault: 'hang' })
    const hanging = post()
    await expect.poll(() => server.requests.length).toBe(1)
    await server.close()
    await expect(hanging).rejects.toThrow('fetch failed')
    expect(await server.requests[0]?.ended).toBe('broken')
  })
})

it('openai: a stream reports usage only on request, in its own chunk', async () => {
  const { path, headers, body } = protocols.openai
  const stream = async (options: object) => {
    const sent = JSON.stringify({ ...body, stream: true, ...options })
    return (
      await fetch(server.url + path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: sent })
    ).text()
  }
  expect(await stream({})).not.toContain('"usage"')
  expect(await stream({ stream_options: { include_usage: true } })).toMatch(/"choices":\[\],"usage":.*\n\ndata: \[DONE\]\n\n$/)
})

it('a server without a key accepts requests without one', async () => {
  const open = await startModelServer({ apiKey: null })
  const { path, body } = protocols.openai
  const response = await fetch(open.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  await open.close()
  expect(response.status).toBe(200)
})

it('openai: each service refuses the members that it does not know, in its own words', async () => {
  const { headers, body } = protocols.openai
  const send = async (service: string, changed: object) => {
    const sent = JSON.stringify({ ...body, ...changed })
    const url = `${server.url}${service}/v1/chat/completions`
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: sent })
    return [response.status, await response.text()]
  }
  const reasoned = { messages: [...body.messages, { role: 'assistant', content: 'x', reasoning_content: 'y' }] }
  expect(await send('', reasoned)).toMatchObject([200, expect.any(String)])
  expect(await send('/groq', reasoned)).toMatchObject([400, expect.stringContaining("'reasoning_content' is unsupported")])
  expect(await send('/cerebras', { max_tokens: 5 })).toMatchObject([422, expect.stringContaining('max_tokens')])
  expect(await send('/mistral', { stream: true, stream_options: { include_usage: true } })).toMatchObject([
    422,
    expect.stringContaining('extra_forbidden'),
  ])
  expect(await send('/xai', { presence_penalty: 0 })).toMatchObject([400, expect.stringContaining('presencePenalty')])
  expect(await send('/together', { max_completion_tokens: 5 })).toMatchObject([400, expect.stringContaining('max_completion_tokens')])
})

it('openai: DeepSeek wants the reasoning of each message with tool calls, unless it does not think', async () => {
  const { headers, body } = protocols.openai
  const send = async (changed: object) => {
    const post = {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ ...body, ...changed }),
    }
    const response = await fetch(`${server.url}/deepseek/v1/chat/completions`, post)
    return [response.status, await response.text()]
  }
  const called = (members: object) => ({
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }], ...members },
      { role: 'tool', tool_call_id: 'c1', content: 'seen' },
    ],
  })
  expect(await send(called({}))).toMatchObject([400, expect.stringContaining('must be passed back')])
  expect(await send(called({ reasoning_content: 'Let me look.' }))).toMatchObject([200, expect.any(String)])
  expect(await send({ ...called({}), thinking: { type: 'disabled' } })).toMatchObject([200, expect.any(String)])
  expect(await send({ messages: [{ role: 'developer', content: 'x' }] })).toMatchObject([400, expect.stringContaining('`developer`')])
})

it('sends frames as they are written, in pieces of any size', async () => {
  const { path, headers, body } = protocols.openai
  const frames = [{ choices: [] }, { type: 'error', error: { message: 'x' } }, 'data: [DONE]\n\n']
  server.script({ frames }, { frames, pieceBytes: 3 })
  const read = async () => {
    const sent = JSON.stringify({ ...body, stream: true })
    const post = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: sent }
    return (await fetch(server.url + path, post)).text()
  }
  const whole = 'data: {"choices":[]}\n\nevent: error\ndata: {"type":"error","error":{"message":"x"}}\n\ndata: [DONE]\n\n'
  expect([await read(), await read()]).toEqual([whole, whole])
})
