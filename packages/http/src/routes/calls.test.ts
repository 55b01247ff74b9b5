import { readDirectCall } from '@sluice/agent'
import { testSnapshot } from '@sluice/runtime/testing/test-snapshot'
import { defineTool } from '@sluice/sdk'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: v.object({ at: v.string() }),
  risk: 'read',
  egress: false,
  untrusted: false,
  run: async () => 'seen',
})
const { registry } = testSnapshot()
const offered = [look, { ...look, name: 'touch' }]
const withTools = { ...registry, offered, tools: new Map(offered.map((tool) => [tool.name, tool])) }

async function arrange(callable: string[] = ['look', 'gone']) {
  const made = gateway({
    config: { callable_tools: callable },
    snapshot: { registry: withTools, registries: new Map([['main', withTools]]) },
  })
  const { token, device } = await made.pair()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const post = (tool: string, body: object, more: Record<string, string> = {}) =>
    made.request(`/api/tools/${tool}/calls`, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) })
  const finish = (id: string, response: string) => {
    const { text = '', idempotency } = made.turns.at(-1) ?? {}
    return made.store.turns.finish({
      id,
      agent: 'main',
      sessionId: null,
      owner: device,
      source: 'call',
      input: text,
      model: null,
      error: null,
      inputTokens: 0,
      outputTokens: 0,
      costUsd: 0,
      attempts: 1,
      createdAtMs: made.clock.nowMs(),
      endedAtMs: made.clock.nowMs(),
      messages: [],
      status: 'done',
      response,
      ...(idempotency && { idempotency }),
    })
  }
  return { ...made, headers, device, post, finish }
}

const accepted = async (response: Response) => (await response.json()) as { readonly call_id?: string; readonly status_url?: string }

describe('direct calls', () => {
  test('lists the callable tools that exist, with their schemas', async () => {
    const { request, headers } = await arrange()
    expect(await (await request('/api/callable-tools', { headers })).json()).toEqual({
      tools: [{ name: 'look', description: 'Looks.', input_schema: expect.objectContaining({ required: ['at'] }), read_only: true }],
    })
  })

  test('stores the call as a turn of the device that may use this tool only', async () => {
    const { post, turns, device } = await arrange()
    expect((await post('look', { input: { at: 'x' } }, { prefer: 'respond-async' })).status).toBe(202)
    expect(turns).toMatchObject([{ source: 'call', session: null, owner: device, caller: `device:${device}`, tools: ['look'] }])
    expect(readDirectCall(turns[0]?.text ?? '')).toEqual({ tool: 'look', input: { at: 'x' } })
  })

  test('refuses a tool that is not callable, and an input that is not an object', async () => {
    const { post, turns } = await arrange()
    expect((await post('touch', { input: { at: 'x' } })).status).toBe(404)
    expect((await post('look', { input: 'x' })).status).toBe(400)
    expect((await post('look', { agent: 'other' })).status).toBe(400)
    expect(turns).toEqual([])
  })

  test('answers a repeat with the same key by the call that has it', async () => {
    const { post, turns, finish } = await arrange()
    const key = { 'x-idempotency-key': 'k' }
    const { call_id = '' } = await accepted(await post('look', { input: { at: 'x' } }, key))
    expect((await post('look', { input: { at: 'x' } }, key)).status).toBe(202)
    expect((await post('look', { input: { at: 'other' } }, key)).status).toBe(409)
    await finish(call_id, '{"outcome":"ok","output":"seen","data":"{\\"n\\":1}","untrusted":"the web"}')
    const again = await post('look', { input: { at: 'x' } }, key)
    expect([again.status, await again.json()]).toEqual([
      200,
      {
        call_id,
        tool: 'look',
        agent: 'main',
        status: 'done',
        outcome: 'ok',
        output: 'seen',
        data: { n: 1 },
        untrusted: 'the web',
        error: null,
        created_at: expect.any(String),
        ended_at: expect.any(String),
      },
    ])
    expect(turns).toHaveLength(1)
  })

  test('shows a call to its device and to operators, and no other turn', async () => {
    const { post, request, headers, pair } = await arrange()
    const { status_url = '' } = await accepted(await post('look', { input: { at: 'x' } }))
    expect((await request(status_url, { headers })).status).toBe(200)
    const other = await pair('other', null, 'client')
    expect((await request(status_url, { headers: { authorization: `Bearer ${other.token}` } })).status).toBe(404)
    await request('/webhook', { method: 'POST', headers, body: '{"message":"hi"}' })
    expect((await request('/api/calls/turn-2', { headers })).status).toBe(404)
  })
})
