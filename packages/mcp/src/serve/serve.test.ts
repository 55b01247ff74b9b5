import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type ApiCall, AppError, type RouteRequest } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import feature from '../index.ts'

const lines = (...frames: object[]) => new Response(frames.map((frame) => `${JSON.stringify(frame)}\n`).join(''))

const CALLABLE = ['look', 'send_message'].map((name) => ({
  name,
  description: `The tool ${name}.`,
  input_schema: { type: 'object', properties: { at: { type: 'string' } } },
  read_only: true,
}))

/** A client of `/mcp`, whose calls of the API `api` answers. */
async function arrange(api: (call: ApiCall) => unknown, role: 'operator' | 'client' = 'operator', mode: 'auto' | 'legacy' = 'auto') {
  const schema = feature.section?.schema
  if (!schema) throw new Error('The feature has no section')
  const host = testHost()
  const [route] = feature.build(host, v.parse(schema, { serve: { enabled: true } })).routes ?? []
  const calls: ApiCall[] = []
  const serve = async (input: string | URL, init: RequestInit = {}) => {
    if (init.method !== 'POST') return new Response(null, { status: 405 })
    const request = new Request(input, init)
    const raw = new Uint8Array(await request.arrayBuffer())
    const answer = route?.handle({
      url: new URL(request.url),
      headers: request.headers,
      signal: request.signal,
      raw,
      body: JSON.parse(new TextDecoder().decode(raw)),
      role,
      api: async (call) => {
        if (call.path === '/api/callable-tools') return { tools: CALLABLE }
        calls.push(call)
        return api(call)
      },
    } as RouteRequest)
    return (await answer) as Response
  }
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: serve }))
  const call = async (name: string, input: object = {}, meta?: Record<string, unknown>) => {
    const result = await client.callTool({ name, arguments: input as Record<string, unknown>, ...(meta && { _meta: meta }) })
    return { ...result, text: (result.content as { text?: string }[]).map((block) => block.text).join('') }
  }
  return { host, client, call, calls }
}

describe('this agent as an MCP server', () => {
  test('serves every revision of the protocol from the same tools', async () => {
    for (const mode of ['auto', 'legacy'] as const) {
      const { client } = await arrange(() => ({}), 'operator', mode)
      expect(client.getProtocolEra()).toBe(mode === 'auto' ? 'modern' : 'legacy')
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
        'send_message',
        'list_approvals',
        'answer_approval',
        'list_procedures',
        'start_procedure',
        'show_run',
        'look',
      ])
    }
  })

  test('a client neither sees nor calls the tools of operators', async () => {
    const { client, call, calls } = await arrange(() => ({}), 'client')
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['send_message', 'list_approvals', 'answer_approval', 'look'])
    expect(await call('start_procedure', { name: 'x' })).toMatchObject({ isError: true, text: "There is no tool 'start_procedure'" })
    expect(calls).toEqual([])
  })

  test('sends a message as a turn and returns its answer', async () => {
    const done = { type: 'done', full_response: 'Hello\nAnn', turn_id: 't1', model: 'm', finish_reason: 'stop' }
    const { call, calls } = await arrange(() => lines({ type: 'chunk', content: 'Hello' }, done))
    expect(await call('send_message', { message: 'hi', session_id: 's' })).toMatchObject({
      text: 'Hello\nAnn',
      structuredContent: { answer: 'Hello\nAnn', turn_id: 't1', finish_reason: 'stop' },
    })
    expect(calls).toMatchObject([{ method: 'POST', path: '/api/turns', body: { message: 'hi', session_id: 's', ask: true } }])
  })

  test('a turn that fails is an error result', async () => {
    const answers = [lines({ type: 'error', message: 'no model' }), lines({ type: 'aborted', turn_id: null }), lines()]
    const { call } = await arrange(() => answers.shift())
    expect(await call('send_message', { message: 'hi' })).toMatchObject({ isError: true, text: 'no model' })
    for (let count = 0; count < 2; count++)
      expect(await call('send_message', { message: 'hi' })).toMatchObject({ isError: true, text: 'The turn was aborted' })
  })

  test('calls the routes of approvals and procedures, with names as one segment of the path', async () => {
    const { call, calls } = await arrange(() => ({ ok: true }))
    await call('list_approvals')
    await call('answer_approval', { run_id: 'r/1', step_id: '../x', approved: false, feedback: 'no' })
    await call('start_procedure', { name: 'a?b', payload: { n: 1 } })
    expect(await call('show_run', { run_id: 'r1' })).toMatchObject({ text: '{"ok":true}', structuredContent: { ok: true } })
    expect(calls.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['GET', '/api/approvals?state=pending', undefined],
      ['POST', '/api/approvals/r%2F1/..%2Fx', { approved: false, feedback: 'no' }],
      ['POST', '/api/sops/a%3Fb/runs', { payload: { n: 1 } }],
      ['GET', '/api/sops/runs/r1', undefined],
    ])
  })

  test('shows refusals of the API, and no internal error', async () => {
    const errors = [new AppError('forbidden', 'not yours'), new Error('secret detail')]
    const { call, host } = await arrange(() => {
      throw errors.shift()
    })
    expect(await call('list_approvals')).toMatchObject({ isError: true, text: 'not yours' })
    expect(await call('list_approvals')).toMatchObject({ isError: true, text: 'internal error' })
    expect(host.logs.map(({ message }) => message)).toContain('MCP tool failed')
  })

  test('checks the input of a tool', async () => {
    const { call, calls } = await arrange(() => ({}))
    expect(await call('send_message', { message: 7 })).toMatchObject({ isError: true, text: expect.stringContaining('message: ') })
    expect(await call('show_run', {})).toMatchObject({ isError: true })
    expect(calls).toEqual([])
  })

  test('calls a callable tool through the API, with the key of the caller', async () => {
    const results = [
      { call_id: 'c1', outcome: 'ok', output: 'seen', data: { n: 1 }, untrusted: 'the web', error: null },
      { call_id: 'c2', outcome: 'interrupted', output: 'it may have run', data: null, untrusted: null, error: null },
      { call_id: 'c3', outcome: null, output: null, data: null, untrusted: null, error: { code: 'aborted', message: 'stopped' } },
      new Response('{"call_id":"c4","status_url":"/api/calls/c4"}', { status: 202 }),
    ]
    const { call, calls } = await arrange(() => results.shift(), 'client')
    expect(await call('look', { at: 'x' }, { 'sluice/idempotency-key': 'k' })).toMatchObject({
      text: 'seen',
      structuredContent: { n: 1 },
      _meta: { 'sluice/call-id': 'c1', 'sluice/untrusted': 'the web' },
    })
    expect(calls).toMatchObject([
      { method: 'POST', path: '/api/tools/look/calls', body: { input: { at: 'x' } }, headers: { 'x-idempotency-key': 'k' } },
    ])
    for (const text of ['it may have run', 'stopped', expect.stringContaining('/api/calls/c4')])
      expect(await call('look', {})).toMatchObject({ isError: true, text })
  })
})
