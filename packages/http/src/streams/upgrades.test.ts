/** Which requests for an upgrade are valid, over real connections. */
import { expect, test } from 'vitest'
import { openRaw } from './testing/socket-client.ts'
import { startStreamServer, TOKENS } from './testing/stream-server.ts'

/** Resolves to the status of the answer to an upgrade with this target and host. */
async function statusOf(port: number, target: string, host: string): Promise<string> {
  const lines = [
    `GET ${target} HTTP/1.1`,
    `Host: ${host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    `Authorization: Bearer ${TOKENS.d1}`,
  ]
  const raw = openRaw(port, `${lines.join('\r\n')}\r\n\r\n`)
  await expect.poll(raw.received).toContain('\r\n\r\n')
  raw.transport.destroy()
  return raw.received().split(' ')[1] ?? ''
}

test.each([
  ['a name', '/ws/events', 'sluice.example'],
  ['a name in capitals with a port', '/ws/events', 'Sluice.Example:42617'],
  ['an IPv6 address', '/ws/events', '[::1]:42617'],
  ['a target with its host', 'http://sluice.example/ws/events', 'sluice.example'],
  ['a backslash in the query', '/ws/events?types=a\\b', 'sluice.example'],
])('grants an upgrade: %s', async (_what, target, host) => {
  await using server = await startStreamServer()
  expect(await statusOf(server.port, target, host)).toBe('101')
})

test.each([
  ['a space in the host', '/ws/events', 'a b'],
  ['a user in the host', '/ws/events', 'user@sluice.example'],
  ['a path in the host', '/ws/events', 'sluice.example/x'],
  ['a backslash in the path', '/ws\\events', 'sluice.example'],
  ['a target without a slash', 'ws/events', 'sluice.example'],
])('refuses an upgrade: %s', async (_what, target, host) => {
  await using server = await startStreamServer()
  expect(await statusOf(server.port, target, host)).toBe('400')
  expect(server.counts.ws).toBe(0)
})

test('a connection that the library refuses is not counted any more', async () => {
  await using server = await startStreamServer()
  const lines = ['GET /ws/events HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket', `Authorization: Bearer ${TOKENS.d1}`]
  const raw = openRaw(server.port, `${lines.join('\r\n')}\r\n\r\n`)
  await expect.poll(raw.received).toContain('400')
  await expect.poll(() => server.counts.ws).toBe(0)
})
