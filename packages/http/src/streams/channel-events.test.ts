/** `POST /api/channel-events` over HTTP. */

import { expect, test } from 'vitest'
import { startStreamServer, TOKENS } from './testing/stream-server.ts'

interface Answer {
  readonly channels?: readonly { readonly channel: string; readonly status: string; readonly detail: string }[]
}

async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/api/channel-events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Answer }
}

test('the body goes to every subscriber unchanged, with unknown members', async () => {
  await using server = await startStreamServer()
  const event = {
    type: 'agent.completed',
    content: { title: 'Done', message: 'all of it', more: [1, { deep: null }] },
    usage: { tokens: 3 },
    agentId: 'a1',
    timeout: 5,
    run_id: 'r',
  }
  const { status, body } = await post(server.url, event)
  expect({ status, body }).toEqual({ status: 200, body: { ok: true, event_id: 'r1-1', channels: [] } })
  expect(server.bus.recent(10).map(({ envelope }) => envelope)).toEqual([
    { id: 'r1-1', timestamp: '2026-01-01T00:00:00.000Z', type: 'channel_event', payload: event },
  ])
})

test('every named channel has a result, and none fails the request', async () => {
  await using server = await startStreamServer()
  const channels = ['dashboard', 'Community', 'workspace', 'messenger', 'fax', 'constructor']
  const { status, body } = await post(server.url, { type: 'note', channels })
  expect(status).toBe(200)
  const answers = body.channels ?? []
  expect(answers.map(({ channel, status: outcome }) => `${channel} ${outcome}`)).toEqual([
    'dashboard broadcast',
    'Community unavailable',
    'workspace unavailable',
    'messenger unavailable',
    'fax unavailable',
    'constructor unavailable',
  ])
  const wanted = ['subscriber', 'channel-discord', 'channel-slack', 'channel-telegram', 'no such channel', 'no such channel']
  for (const [index, detail] of wanted.entries()) expect(answers[index]?.detail).toContain(detail)
})

test('an approval request without its ids is refused and not broadcast', async () => {
  await using server = await startStreamServer()
  const request = { type: 'human_approval_request', run_id: 'r', step_id: 's' }
  expect(await post(server.url, { ...request, step_id: undefined })).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  expect(await post(server.url, { ...request, run_id: '' })).toMatchObject({ status: 400 })
  expect(server.bus.seq).toBe(0)
})

test.each(['[]', ' [{}]', '"text"', 'null', '1', '{', '', '{"type":1}', '{"channels":"dashboard"}', '{"channels":[1]}', '{"run_id":1}'])(
  'an invalid body is 400: %s',
  async (body) => {
    await using server = await startStreamServer()
    expect(await post(server.url, body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(server.bus.seq).toBe(0)
  },
)

test.each([
  ['x-forwarded-for', '127.0.0.1'],
  ['origin', 'https://evil.example'],
])('a request through a proxy or from a web page is refused: %s', async (name, value) => {
  await using server = await startStreamServer()
  expect(await post(server.url, { type: 'note' }, { [name]: value, authorization: `Bearer ${TOKENS.d1}` })).toMatchObject({ status: 403 })
})
