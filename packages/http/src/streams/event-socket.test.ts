/** `/ws/events`, and the rules of every WebSocket, over real connections. */
import { expect, test } from 'vitest'
import { connectSocket, openRaw, upgradeRequest } from './testing/socket-client.ts'
import { subscribe } from './testing/sse-client.ts'
import { startStreamServer, TOKENS } from './testing/stream-server.ts'
import { PING_MS, SILENCE_MS_MAX } from './websocket.ts'

const AUTHORIZED = [`Authorization: Bearer ${TOKENS.d1}`]

test('a socket sends its starting point, then the envelopes of /api/events', async () => {
  await using server = await startStreamServer()
  server.bus.emit({ type: 'x_before' })
  const client = await connectSocket(server.url, '/ws/events')
  server.bus.emit({ type: 'channel_event', payload: { text: 'zwei\nZeilen – ü' } })
  expect(await client.messages.first(2)).toEqual([
    { type: 'connected', run: 'r1', seq: 1 },
    { id: 'r1-2', timestamp: '2026-01-01T00:00:00.000Z', type: 'channel_event', payload: { text: 'zwei\nZeilen – ü' } },
  ])
  expect(server.counts).toEqual({ sse: 0, ws: 1, dropped: 0 })
})

test('a socket resumes after an id with the gap first, and filters by type', async () => {
  await using server = await startStreamServer({ keptMax: 3 })
  for (const type of ['x_a', 'x_a', 'x_a', 'x_b', 'x_a'] as const) server.bus.emit({ type })
  const client = await connectSocket(server.url, '/ws/events?last_event_id=r1-1&types=x_a')
  server.bus.emit({ type: 'x_b' })
  server.bus.emit({ type: 'x_a' })
  const [, gap, ...events] = await client.messages.first(5)
  expect(gap).toEqual({ type: 'gap', missed: 1 })
  expect(events.map(({ id }) => id)).toEqual(['r1-3', 'r1-5', 'r1-7'])
})

test('a browser authenticates by subprotocol; the token is never echoed', async () => {
  await using server = await startStreamServer()
  const client = await connectSocket(server.url, '/ws/events', { protocols: ['sluice.v1', `bearer.${TOKENS.d1}`], headers: {} })
  expect(client.socket.protocol).toBe('sluice.v1')
  const bare = openRaw(server.port, upgradeRequest('/ws/events', [`Sec-WebSocket-Protocol: bearer.${TOKENS.d1}`]))
  await expect.poll(bare.received).toContain('connected')
  expect(bare.received()).toMatch(/^HTTP\/1\.1 101 /)
  expect(bare.received()).not.toContain(TOKENS.d1)
  bare.transport.destroy()
})

test.each([
  ['401 without a token', 'refused with 401', {}],
  ['401 with a wrong token', 'refused with 401', { authorization: 'Bearer wrong' }],
  ['403 from a foreign origin', 'refused with 403', { authorization: `Bearer ${TOKENS.d1}`, origin: 'https://evil.example' }],
])('a refusal is an HTTP answer without an upgrade: %s', async (_what, message, headers) => {
  await using server = await startStreamServer()
  await expect(connectSocket(server.url, '/ws/events', { headers })).rejects.toThrow(message)
  await expect(connectSocket(server.url, '/ws/chat', { headers })).rejects.toThrow(message)
  expect(server.counts.ws).toBe(0)
})

test('a token in the query is ignored', async () => {
  await using server = await startStreamServer()
  await expect(connectSocket(server.url, `/ws/events?token=${TOKENS.d1}`, { headers: {} })).rejects.toThrow('refused with 401')
})

test('without pairing, a foreign origin or host is still refused', async () => {
  await using server = await startStreamServer({ config: { require_pairing: false } })
  await expect(connectSocket(server.url, '/ws/chat', { headers: { origin: 'https://evil.example' } })).rejects.toThrow('refused with 403')
  await expect(connectSocket(server.url, '/ws/chat', { headers: { host: 'evil.example' } })).rejects.toThrow('refused with 403')
  const own = await connectSocket(server.url, '/ws/events', { headers: { origin: server.url } })
  await own.messages.first(1)
})

test('the own origin is accepted', async () => {
  await using server = await startStreamServer()
  const headers = { authorization: `Bearer ${TOKENS.d1}`, origin: `http://localhost:${server.port}` }
  const client = await connectSocket(server.url, '/ws/events', { headers })
  await client.messages.first(1)
})

test('a request without an upgrade is refused', async () => {
  await using server = await startStreamServer()
  const response = await fetch(`${server.url}/ws/events`, { headers: { authorization: `Bearer ${TOKENS.d1}` } })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ code: 'invalid_request' })
})

test('a broken handshake is refused and holds no room', async () => {
  await using server = await startStreamServer()
  const raw = openRaw(server.port, upgradeRequest('/ws/events', AUTHORIZED).replace(/Key: .*/, 'Key: short'))
  await raw.closed
  expect(raw.received()).toMatch(/^HTTP\/1\.1 400 /)
  await expect.poll(() => server.counts.ws).toBe(0)
})

test('a client that leaves during the handshake holds no room', async () => {
  await using server = await startStreamServer()
  const raw = openRaw(server.port, upgradeRequest('/ws/events', AUTHORIZED))
  raw.transport.once('connect', () => raw.transport.resetAndDestroy())
  await raw.closed
  const client = await connectSocket(server.url, '/ws/events')
  await client.messages.first(1)
  await expect.poll(() => server.counts.ws).toBe(1)
  expect(server.errors).toEqual([])
})

test('max_subscribers bounds streams and sockets together', async () => {
  await using server = await startStreamServer({ config: { max_subscribers: 1 } })
  const client = await connectSocket(server.url, '/ws/events')
  await expect(connectSocket(server.url, '/ws/chat')).rejects.toThrow('refused with 503')
  const headers = { authorization: `Bearer ${TOKENS.d1}` }
  expect((await fetch(`${server.url}/api/events`, { headers })).status).toBe(503)
  client.socket.close()
  expect((await client.closed).code).toBe(1005)
  await expect.poll(() => server.counts.ws).toBe(0)
  await connectSocket(server.url, '/ws/events')
})

test('a revoked device has its sockets closed with 4401 within a second', async () => {
  await using server = await startStreamServer()
  const events = await connectSocket(server.url, '/ws/events')
  const chat = await connectSocket(server.url, '/ws/chat')
  const other = await connectSocket(server.url, '/ws/events', { headers: { authorization: `Bearer ${TOKENS.d2}` } })
  await server.clock.advance(500)
  server.revoke('d1')
  await server.clock.advance(1000)
  expect((await events.closed).code).toBe(4401)
  expect((await chat.closed).code).toBe(4401)
  expect(other.socket.readyState).toBe(other.socket.OPEN)
})

test('a failed check for revocations is repeated', async () => {
  let failures = 0
  const lookUp = async () => {
    if (failures-- > 0) throw new Error('the disk is away')
  }
  await using server = await startStreamServer({ lookUp })
  const client = await connectSocket(server.url, '/ws/events')
  await server.clock.advance(500)
  failures = 1
  server.revoke('d1')
  await server.clock.advance(500)
  expect(server.errors).toEqual(['check for revoked devices failed'])
  await server.clock.advance(500)
  expect((await client.closed).code).toBe(4401)
})

test('a replaced token closes only the sockets that it opened', async () => {
  await using server = await startStreamServer()
  const old = await connectSocket(server.url, '/ws/events')
  await server.clock.advance(500)
  server.rotate('d1', 'another-token')
  const events = await connectSocket(server.url, '/ws/events', { headers: { authorization: 'Bearer another-token' } })
  const stream = await subscribe(server.url, { headers: { authorization: 'Bearer another-token' } })
  await server.clock.advance(1000)
  expect((await old.closed).code).toBe(4401)
  server.bus.emit({ type: 'x_tick' })
  expect((await events.messages.first(2))[1]).toMatchObject({ type: 'x_tick' })
  expect(await stream.blocks.first(2)).toHaveLength(2)
})

test('connections without a token end when pairing becomes required', async () => {
  await using server = await startStreamServer({ config: { require_pairing: false } })
  const events = await connectSocket(server.url, '/ws/events')
  const chat = await connectSocket(server.url, '/ws/chat')
  const stream = await subscribe(server.url)
  server.reload({ max_subscribers: 50 })
  await stream.blocks.first(2)
  expect(server.counts).toMatchObject({ ws: 2, sse: 1 })
  server.reload({ require_pairing: true })
  expect((await events.closed).code).toBe(4401)
  expect((await chat.closed).code).toBe(4401)
  await stream.closed
  const paired = await connectSocket(server.url, '/ws/events')
  server.reload({ max_subscribers: 60 })
  expect((await paired.messages.first(2))[1]).toMatchObject({ type: 'config_reloaded' })
  expect(paired.socket.readyState).toBe(paired.socket.OPEN)
})

test('a shutdown closes sockets with 1001 and the reason', async () => {
  await using server = await startStreamServer()
  const events = await connectSocket(server.url, '/ws/events')
  const chat = await connectSocket(server.url, '/ws/chat')
  server.streams.closeAll('the daemon stops')
  expect(await events.closed).toEqual({ code: 1001, reason: 'the daemon stops' })
  expect((await chat.closed).code).toBe(1001)
})

test('messages of the client are ignored, up to the size limit', async () => {
  await using server = await startStreamServer()
  const client = await connectSocket(server.url, '/ws/events')
  client.socket.send('{"type":"message"}')
  client.socket.send(Buffer.from([1, 2, 3]))
  server.bus.emit({ type: 'x_tick' })
  await client.messages.first(2)
  client.socket.send('x'.repeat(256 * 1024 + 1))
  expect((await client.closed).code).toBe(1009)
  expect(server.errors).toEqual([])
})

test('a socket is pinged every 25 s and stays while it answers', async () => {
  await using server = await startStreamServer()
  const client = await connectSocket(server.url, '/ws/events')
  await client.messages.first(1)
  for (let beat = 0; beat < 4; beat++) {
    const pinged = new Promise((resolve) => client.socket.once('ping', resolve))
    await server.clock.advance(PING_MS)
    await pinged
    // The pong was sent before: an event and its answer follow it on the same connections.
    server.bus.emit({ type: 'x_tick' })
    await client.messages.first(beat + 2)
    await expect(fetch(`${server.url}/nothing`)).resolves.toMatchObject({ status: 404 })
  }
  expect(client.socket.readyState).toBe(client.socket.OPEN)
})

test('a socket that answers no ping for a minute is terminated', async () => {
  await using server = await startStreamServer()
  const dead = openRaw(server.port, upgradeRequest('/ws/events', AUTHORIZED))
  await expect.poll(dead.received).toContain('connected')
  for (let passedMs = 0; passedMs < SILENCE_MS_MAX; passedMs += PING_MS) await server.clock.advance(PING_MS)
  await dead.closed
  await expect.poll(() => server.counts.ws).toBe(0)
})

test('a socket that does not read has a bounded buffer and later gets a gap', async () => {
  await using server = await startStreamServer()
  const slow = await connectSocket(server.url, '/ws/events')
  const quick = await connectSocket(server.url, '/ws/events')
  await slow.messages.first(1)
  slow.socket.pause()
  const count = 400
  for (let n = 1; n <= count; n++) {
    server.bus.emit({ type: 'x_tick', n, text: 'x'.repeat(60_000) })
    if (n % 10 === 0) await quick.messages.first(n + 1)
  }
  const lost = server.counts.dropped
  expect(lost).toBeGreaterThan(0)
  slow.socket.resume()
  await slow.messages.first(1 + count - lost)
  await server.clock.advance(2000)
  expect((await slow.messages.first(1 + count - lost + 1)).at(-1)).toEqual({ type: 'gap', missed: lost })
})
