/** `GET /api/events` over real connections. */
import { expect, test } from 'vitest'
import { BUFFERED_BYTES_MAX } from './fan-out.ts'
import { connectSocket, openRaw, upgradeRequest } from './testing/socket-client.ts'
import { subscribe } from './testing/sse-client.ts'
import { startStreamServer, TOKENS } from './testing/stream-server.ts'

test('a subscriber gets its starting point, then each event as id, type and JSON', async () => {
  await using server = await startStreamServer()
  server.bus.emit({ type: 'x_before' })
  const client = await subscribe(server.url)
  expect(client.status).toBe(200)
  expect(client.headers).toMatchObject({ 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
  server.bus.emit({ type: 'channel_event', payload: { type: 'note', text: 'zwei\nZeilen' } })
  expect(await client.blocks.first(2)).toEqual([
    'retry: 2000\nid: r1-1',
    'id: r1-2\nevent: channel_event\ndata: {"id":"r1-2","timestamp":"2026-01-01T00:00:00.000Z","type":"channel_event","payload":{"type":"note","text":"zwei\\nZeilen"}}',
  ])
  expect(server.counts).toEqual({ sse: 1, ws: 0, dropped: 0 })
})

test.each([
  { 'last-event-id': 'r1-3', path: '/api/events' },
  { 'last-event-id': '', path: '/api/events?last_event_id=r1-3' },
  { 'last-event-id': 'r1-3', path: '/api/events?last_event_id=r1-1' },
])('a subscriber resumes after its last event; the header wins (%o)', async ({ path, ...headers }) => {
  await using server = await startStreamServer()
  for (let n = 1; n <= 4; n++) server.bus.emit({ type: 'x_tick', n })
  const client = await subscribe(server.url, { path, headers })
  server.bus.emit({ type: 'x_tick', n: 5 })
  expect((await client.blocks.first(3)).map((block) => block.split('\n')[0])).toEqual(['retry: 2000', 'id: r1-4', 'id: r1-5'])
})

test('a subscriber whose last event is not kept gets a gap first', async () => {
  await using server = await startStreamServer({ keptMax: 2 })
  for (let n = 1; n <= 5; n++) server.bus.emit({ type: 'x_tick', n })
  const late = await subscribe(server.url, { headers: { 'last-event-id': 'r1-1' } })
  const foreign = await subscribe(server.url, { headers: { 'last-event-id': 'r0-1' } })
  expect((await late.blocks.first(3))[1]).toBe('event: gap\ndata: {"missed":2}')
  expect((await foreign.blocks.first(3))[1]).toBe('event: gap\ndata: {"missed":null}')
  expect((await late.blocks.first(4))[3]).toMatch(/^id: r1-5\n/)
})

test('types selects the types of events', async () => {
  await using server = await startStreamServer()
  const client = await subscribe(server.url, { path: '/api/events?types=x_b,x_c' })
  for (const type of ['x_a', 'x_b', 'x_c'] as const) server.bus.emit({ type })
  expect((await client.blocks.first(3)).slice(1).map((block) => block.split('\n')[1])).toEqual(['event: x_b', 'event: x_c'])
})

test('a client gets the events of its own turns, an operator all events', async () => {
  await using server = await startStreamServer()
  const tell = (n: number, owner?: string) => server.bus.emit({ type: 'x_tick', n }, owner)
  tell(1, 'c1')
  tell(2, 'd1')
  const resumed = { 'last-event-id': 'r1-0' }
  const client = await subscribe(server.url, { headers: { authorization: `Bearer ${TOKENS.c1}`, ...resumed } })
  const operator = await subscribe(server.url, { headers: resumed })
  tell(3)
  tell(4, 'c1')
  const idsOf = (blocks: readonly string[]) => blocks.slice(1).map((block) => block.split('\n')[0])
  expect(idsOf(await client.blocks.first(3))).toEqual(['id: r1-1', 'id: r1-4'])
  expect(idsOf(await operator.blocks.first(5))).toEqual(['id: r1-1', 'id: r1-2', 'id: r1-3', 'id: r1-4'])
})

test.each([
  [401, '/api/events', { authorization: 'Bearer wrong' }],
  [401, `/api/events?token=${TOKENS.d1}`, { authorization: '' }],
  [400, `/api/events?types=${'x,'.repeat(65)}`, {}],
  [400, `/api/events?last_event_id=${'1'.repeat(257)}`, {}],
])('a refusal is %i with JSON instead of a stream: %s', async (status, path, headers) => {
  await using server = await startStreamServer()
  const client = await subscribe(server.url, { path, headers })
  expect(client.status).toBe(status)
  expect(client.headers['content-type']).toBe('application/json')
  expect(server.counts.sse).toBe(0)
})

test('HEAD answers without opening a stream', async () => {
  await using server = await startStreamServer()
  const response = await fetch(`${server.url}/api/events`, { method: 'HEAD', headers: { authorization: `Bearer ${TOKENS.d1}` } })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  expect(server.counts.sse).toBe(0)
})

test('a silent stream gets a comment every 15 s', async () => {
  await using server = await startStreamServer()
  const client = await subscribe(server.url)
  await client.blocks.first(1)
  await server.clock.advance(15_000)
  await server.clock.advance(15_000)
  expect((await client.blocks.first(3)).slice(1)).toEqual([':', ':'])
})

test('max_subscribers bounds the open streams', async () => {
  await using server = await startStreamServer({ config: { max_subscribers: 1 } })
  const first = await subscribe(server.url)
  const refused = await subscribe(server.url)
  expect(refused.status).toBe(503)
  expect(refused.headers['retry-after']).toBe('5')
  first.response.destroy()
  await first.closed
  await expect.poll(() => server.counts.sse).toBe(0)
  expect((await subscribe(server.url)).status).toBe(200)
})

test('a client has its share of streams and WebSockets, and other clients leave room for operators', async () => {
  await using server = await startStreamServer({ config: { max_subscribers: 3 }, shares: { streams: 2 } })
  const headers = { authorization: `Bearer ${TOKENS.c1}` }
  const first = await subscribe(server.url, { headers })
  await connectSocket(server.url, '/ws/events', { headers })
  const refused = await subscribe(server.url, { headers })
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, '5'])
  await expect(connectSocket(server.url, '/ws/chat', { headers })).rejects.toThrow('429')
  for (let n = 0; n < 3; n++) expect((await subscribe(server.url)).status).toBe(200)
  expect((await subscribe(server.url)).status).toBe(503)
  first.response.destroy()
  await expect.poll(() => server.counts.sse).toBe(3)
  expect((await subscribe(server.url, { headers })).status).toBe(503)
})

test.each([
  ['stream', `GET /api/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKENS.d1}\r\n\r\n`],
  ['socket', upgradeRequest('/ws/events', [`Authorization: Bearer ${TOKENS.d1}`])],
])('a client that leaves during the lookup of its token takes no room: %s', async (_what, request) => {
  const asked = Promise.withResolvers<void>()
  const looked = Promise.withResolvers<void>()
  const lookUp = () => {
    asked.resolve()
    return looked.promise
  }
  await using server = await startStreamServer({ lookUp })
  const raw = openRaw(server.port, request)
  await asked.promise
  raw.transport.resetAndDestroy()
  await raw.closed
  // A later request: once it is answered, the server has seen the end of the earlier one.
  await fetch(`${server.url}/nothing`)
  looked.resolve()
  const client = await subscribe(server.url)
  await client.blocks.first(1)
  await expect.poll(() => server.counts).toEqual({ sse: 1, ws: 0, dropped: 0 })
  expect(server.errors).toEqual([])
})

test('a revoked device loses its streams within a second', async () => {
  await using server = await startStreamServer()
  const revoked = await subscribe(server.url)
  const other = await subscribe(server.url, { headers: { authorization: `Bearer ${TOKENS.d2}` } })
  await server.clock.advance(500)
  server.revoke('d1')
  await server.clock.advance(1000)
  await revoked.closed
  server.bus.emit({ type: 'x_tick' })
  await other.blocks.first(2)
  expect(revoked.blocks.all).toHaveLength(1)
  await expect.poll(() => server.counts.sse).toBe(1)
})

test('a subscriber that does not read has a bounded buffer and later gets a gap', async () => {
  await using server = await startStreamServer()
  const slow = await subscribe(server.url)
  const quick = await subscribe(server.url)
  slow.response.pause()
  const text = 'x'.repeat(60_000)
  const count = 400
  for (let n = 1; n <= count; n++) {
    server.bus.emit({ type: 'x_tick', n, text })
    if (n % 10 === 0) await quick.blocks.first(n + 1)
  }
  const lost = server.counts.dropped
  expect(lost).toBeGreaterThan(0)
  expect(lost).toBeLessThan(count - BUFFERED_BYTES_MAX / text.length)
  slow.response.resume()
  await slow.blocks.first(1 + count - lost)
  await server.clock.advance(2000)
  const blocks = await slow.blocks.first(1 + count - lost + 1)
  expect(blocks.at(-1)).toBe(`event: gap\ndata: {"missed":${lost}}`)
  server.bus.emit({ type: 'x_tick', n: count + 1 })
  expect((await slow.blocks.first(blocks.length + 1)).at(-1)).toContain(`"n":${count + 1}`)
})

test('a shutdown ends every stream and admits no more', async () => {
  await using server = await startStreamServer()
  const client = await subscribe(server.url)
  server.streams.closeAll('stopping')
  await client.closed
  expect(client.response.complete).toBe(true)
  expect((await subscribe(server.url)).status).toBe(503)
  expect(server.errors).toEqual([])
})
