/** `/ws/chat` over real connections. */
import { expect, test } from 'vitest'
import { ScriptedAgent } from './testing/scripted-agent.ts'
import { clientFrame, connectSocket, openRaw, upgradeRequest } from './testing/socket-client.ts'
import { startStreamServer, TOKENS } from './testing/stream-server.ts'

const TEXT = 1
const BINARY = 2

const CHAT = upgradeRequest('/ws/chat', [`Authorization: Bearer ${TOKENS.d1}`])
const session = (id: string) => ({ id, name: null, createdAtMs: 0, lastActiveAtMs: 0, messageCount: 4 })

test('a chat starts with its session, which POST /webhook shares', async () => {
  await using server = await startStreamServer({ sessions: [session('d1/home'), session('local/home')] })
  const kept = await connectSocket(server.url, '/ws/chat?session_id=home')
  const other = await connectSocket(server.url, '/ws/chat?session_id=home', { headers: { authorization: `Bearer ${TOKENS.d2}` } })
  const fresh = await connectSocket(server.url, '/ws/chat')
  expect(await kept.messages.first(1)).toEqual([{ type: 'session_start', session_id: 'home', resumed: true, message_count: 4 }])
  expect(await other.messages.first(1)).toEqual([{ type: 'session_start', session_id: 'home', resumed: false, message_count: 0 }])
  const [start] = await fresh.messages.first(1)
  expect(start?.session_id).toMatch(/^[0-9a-f-]{36}$/)
})

test('without pairing, sessions belong to this machine', async () => {
  await using server = await startStreamServer({ config: { require_pairing: false }, sessions: [session('local/home')] })
  const client = await connectSocket(server.url, '/ws/chat?session_id=home', { headers: {} })
  expect(await client.messages.first(1)).toMatchObject([{ resumed: true }])
})

test.each(['', 'a/b', '..%2Fx', 'ü', 'x'.repeat(129)])('the invalid session name %j is refused', async (name) => {
  await using server = await startStreamServer()
  await expect(connectSocket(server.url, `/ws/chat?session_id=${name}`)).rejects.toThrow('refused with 400')
  await expect.poll(() => server.counts.ws).toBe(0)
})

test('an operator talks to the agent that it names, in a session of this agent', async () => {
  const agent = new ScriptedAgent()
  const sessions = [session('agent:support/d1/home')]
  await using server = await startStreamServer({ agent, agents: ['support'], sessions })
  const client = await connectSocket(server.url, '/ws/chat?session_id=home&agent=support')
  const other = await connectSocket(server.url, '/ws/chat?session_id=home&agent=main')
  expect(await client.messages.first(1)).toMatchObject([{ session_id: 'home', resumed: true }])
  expect(await other.messages.first(1)).toMatchObject([{ session_id: 'home', resumed: false }])
  client.send({ type: 'message', content: 'hello' })
  const turn = await agent.turn(1)
  expect(turn.request.session).toBe('agent:support/d1/home')
  turn.done('Hi')
  expect((await client.messages.first(2)).map(({ type }) => type)).toEqual(['session_start', 'done'])
})

test.each([
  ['a client', TOKENS.c1, 'support', 403, 'Only an operator chooses an agent. Omit agent.'],
  ['a client, whether or not the agent exists', TOKENS.c1, 'other', 403, 'Only an operator chooses an agent. Omit agent.'],
  ['an operator with a mistyped name', TOKENS.d1, 'suport', 400, 'did you mean "support"? The agents are main, support.'],
  ['an operator with a name of Object.prototype', TOKENS.d1, 'constructor', 400, 'there is no agent "constructor"'],
  ['an operator with an empty name', TOKENS.d1, '', 400, 'there is no agent'],
])('refuses %s that names an agent', async (_who, token, name, status, message) => {
  await using server = await startStreamServer({ agents: ['support'] })
  const raw = openRaw(server.port, upgradeRequest(`/ws/chat?agent=${name}`, [`Authorization: Bearer ${token}`, 'Connection: close']))
  await raw.closed
  expect(raw.received().split(' ')[1]).toBe(String(status))
  expect(raw.received()).toContain(message)
  await expect.poll(() => server.counts.ws).toBe(0)
})

test('a client that names main talks to it, as without a name', async () => {
  await using server = await startStreamServer({ agents: ['support'] })
  const client = await connectSocket(server.url, '/ws/chat?agent=main', { headers: { authorization: `Bearer ${TOKENS.c1}` } })
  expect(await client.messages.first(1)).toMatchObject([{ type: 'session_start' }])
})

test('a turn streams only to its own connection', async () => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, '/ws/chat?session_id=s')
  const second = await connectSocket(server.url, '/ws/chat?session_id=s')
  client.send({ type: 'message', content: 'hello' })
  const turn = await agent.turn(1)
  server.bus.emit({ type: 'x_tick' })
  turn.request.listen?.({ type: 'text', delta: 'Hi' })
  turn.done('Hi')
  expect((await client.messages.first(3)).map(({ type }) => type)).toEqual(['session_start', 'chunk', 'done'])
  second.send({ type: 'message', content: 'hello too' })
  const next = await agent.turn(2)
  next.done('Hi too')
  expect((await second.messages.first(2)).map(({ type }) => type)).toEqual(['session_start', 'done'])
  expect(turn.request.session).toBe('d1/s')
  expect(turn.request.client).not.toBe(next.request.client)
})

const QUESTION = {
  tool: 'shell',
  agent: 'main',
  summary: '',
  callHash: 'h1',
  decider: 'asker',
  standing: 'operator',
  sources: [],
  turn: 'turn-1',
  session: null,
  callId: 'call-1',
  inbox: null,
} as const

test('abort and approvals arrive while a turn runs', async () => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, '/ws/chat')
  client.send({ type: 'message', content: 'hello' })
  const { request } = await agent.turn(1)
  const answer = request.approve?.(QUESTION, new AbortController().signal)
  const [, asked] = await client.messages.first(2)
  client.send({ type: 'approval_response', request_id: asked?.request_id, decision: 'approve' })
  expect(await answer).toMatchObject({ by: 'device:d1' })
  client.send({ type: 'abort' })
  expect((await client.messages.first(3)).at(-1)).toEqual({ type: 'aborted', turn_id: 'turn-1' })
})

test('another connection cannot answer an approval of this one', async () => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, '/ws/chat?session_id=s')
  const other = await connectSocket(server.url, '/ws/chat?session_id=s')
  client.send({ type: 'message', content: 'hello' })
  const { request } = await agent.turn(1)
  const cancel = new AbortController()
  const answer = request.approve?.(QUESTION, cancel.signal)
  const [, asked] = await client.messages.first(2)
  other.send({ type: 'approval_response', request_id: asked?.request_id, decision: 'approve' })
  expect((await other.messages.first(2)).at(-1)).toMatchObject({ code: 'INVALID_APPROVAL_RESPONSE' })
  cancel.abort()
  expect(await answer).toBe(false)
})

test.each(['close', 'terminate'] as const)('a client that goes away (%s) aborts its turn', async (leave) => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, '/ws/chat')
  client.send({ type: 'message', content: 'hello' })
  const { request } = await agent.turn(1)
  const aborted = new Promise((resolve) => request.signal?.addEventListener('abort', resolve))
  client.socket[leave]()
  await aborted
  await expect.poll(() => server.counts.ws).toBe(0)
})

test.each(['close', 'terminate'] as const)('a client that names its session and goes away (%s) leaves its turns running', async (leave) => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, '/ws/chat?session_id=mine')
  client.send({ type: 'message', content: 'first' })
  const first = await agent.turn(1)
  client.send({ type: 'message', content: 'second' })
  await expect.poll(() => first.request.superseded?.aborted).toBe(true)
  client.socket[leave]()
  await expect.poll(() => server.counts.ws).toBe(0)
  first.request.listen?.({ type: 'text', delta: 'x'.repeat(8_000_000) })
  first.done('One')
  const second = await agent.turn(2)
  expect([first, second].map(({ request }) => [request.text, request.signal?.aborted])).toEqual([
    ['first', false],
    ['second', false],
  ])
  second.done('Two')
  const again = await connectSocket(server.url, '/ws/chat?session_id=mine')
  expect((await again.messages.first(1)).at(0)).toMatchObject({ type: 'session_start', session_id: 'mine' })
  expect(server.errors).toEqual([])
})

test.each([
  ['leaves the turns of named sessions to the next start', '/ws/chat?session_id=mine', false],
  ['aborts the turns of sessions without a name', '/ws/chat', true],
])('a stop of the daemon %s', async (_what, path, isAborted) => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, path)
  client.send({ type: 'message', content: 'first' })
  const { request } = await agent.turn(1)
  server.streams.closeAll('the daemon stops')
  expect((await client.closed).code).toBe(1001)
  await expect.poll(() => server.counts.ws).toBe(0)
  expect(request.signal?.aborted).toBe(isAborted)
})

test('a question of a client that went away stays open, and is decided over the API', async () => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, '/ws/chat?session_id=mine')
  client.send({ type: 'message', content: 'first' })
  const { request } = await agent.turn(1)
  const answer = request.approve?.(QUESTION, new AbortController().signal)
  const [, asked] = await client.messages.first(2)
  client.socket.terminate()
  await expect.poll(() => server.counts.ws).toBe(0)
  const key = { runId: String(asked?.run_id), stepId: String(asked?.step_id) }
  expect(await server.approvals.get(key)).toMatchObject({ state: 'pending' })
  await server.approvals.decide(key, { state: 'approved', by: 'device:d1', who: { standing: 'operator', isAsked: false } })
  expect(await answer).toMatchObject({ by: 'device:d1' })
})

test('a revoked device loses its connection and its turn', async () => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, '/ws/chat')
  client.send({ type: 'message', content: 'hello' })
  const { request } = await agent.turn(1)
  await server.clock.advance(500)
  server.revoke('d1')
  await server.clock.advance(1000)
  expect((await client.closed).code).toBe(4401)
  await expect.poll(() => request.signal?.aborted).toBe(true)
})

test('text that is not JSON is answered, and the conversation continues', async () => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, '/ws/chat')
  client.socket.send('hello')
  client.send({ type: 'message', content: 'hello' })
  expect((await client.messages.first(2)).at(-1)).toMatchObject({ type: 'error', code: 'INVALID_JSON' })
  const turn = await agent.turn(1)
  turn.done('Hi')
  expect((await client.messages.first(3)).at(-1)).toMatchObject({ type: 'done' })
})

test.each([
  ['binary data closes with 1003', clientFrame(BINARY, Buffer.from('{}')), 1003],
  ['invalid UTF-8 closes with 1007', clientFrame(TEXT, Buffer.from([0xff, 0xfe])), 1007],
  ['an unmasked frame closes with 1002', Buffer.from([0x81, 0x01, 0x41]), 1002],
  ['a reserved opcode closes with 1002', clientFrame(3, Buffer.from('x')), 1002],
  ['a frame over the limit closes with 1009', Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0]), 1009],
])('%s', async (_what, bytes, code) => {
  await using server = await startStreamServer()
  const raw = openRaw(server.port, CHAT)
  await expect.poll(raw.received).toContain('session_start')
  raw.transport.write(bytes)
  await expect.poll(raw.received).toMatch(new RegExp(`\x88.${String.fromCharCode(code >> 8, code & 255)}`, 's'))
  raw.transport.destroy()
  await expect.poll(() => server.counts.ws).toBe(0)
  expect(server.errors).toEqual([])
})

test('a frame that arrives with the handshake is not lost', async () => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const message = clientFrame(TEXT, Buffer.from('{"type":"message","content":"early"}'))
  const raw = openRaw(server.port, Buffer.concat([Buffer.from(CHAT), message]))
  expect((await agent.turn(1)).request.text).toBe('early')
  raw.transport.destroy()
})

test('a client that reads too slowly is closed with 1013', async () => {
  const agent = new ScriptedAgent()
  await using server = await startStreamServer({ agent })
  const client = await connectSocket(server.url, '/ws/chat')
  client.send({ type: 'message', content: 'hello' })
  const { request } = await agent.turn(1)
  client.socket.pause()
  let chunks = 0
  for (; chunks < 5000 && !request.signal?.aborted; chunks++) request.listen?.({ type: 'text', delta: 'x'.repeat(10_000) })
  expect(request.signal?.aborted).toBe(true)
  expect(chunks).toBeGreaterThan(400)
  client.socket.resume()
  expect((await client.closed).code).toBe(1013)
})
