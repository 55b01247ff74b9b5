/** The WebSockets of features over real connections: who may connect, what each side gets, and how they end. */
import { AppError, type FeatureSocket, type SocketRoute } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { connectSocket } from './testing/socket-client.ts'
import { startStreamServer } from './testing/stream-server.ts'

/** A route that returns each message to its sender, and records the messages. */
function echo(auth: SocketRoute['auth'] = 'open') {
  const seen: unknown[] = []
  const opened: FeatureSocket[] = []
  const route: SocketRoute = {
    path: '/ws/echo/:token',
    summary: 'Returns each message',
    auth,
    open({ params }) {
      if (params.token !== 'right') throw new AppError('forbidden', 'The token of the stream is wrong')
      return (socket) => {
        opened.push(socket)
        return {
          message(data) {
            seen.push(data)
            socket.send(JSON.stringify({ got: typeof data === 'string' ? data : [...data] }))
          },
          closed: () => void seen.push('closed'),
        }
      }
    },
  }
  return { route, seen, opened }
}

test('a feature gets texts and bytes, answers them, and learns of the end once', async () => {
  const { route, seen } = echo()
  await using server = await startStreamServer({ sockets: [route] })
  const client = await connectSocket(server.url, '/ws/echo/right', { headers: {} })
  client.socket.send('text')
  client.socket.send(Buffer.from([1, 2]))
  expect(await client.messages.first(2)).toEqual([{ got: 'text' }, { got: [1, 2] }])
  expect(server.counts.ws).toBe(1)
  client.socket.close()
  await expect.poll(() => seen.at(-1)).toBe('closed')
  expect(seen.filter((entry) => entry === 'closed')).toHaveLength(1)
  expect(server.counts.ws).toBe(0)
})

test('a refusal of the feature is an HTTP answer without an upgrade', async () => {
  const { route } = echo()
  await using server = await startStreamServer({ sockets: [route] })
  await expect(connectSocket(server.url, '/ws/echo/wrong', { headers: {} })).rejects.toThrow('refused with 403')
  const foreign = connectSocket(server.url, '/ws/echo/right', { headers: { origin: 'https://evil.example' } })
  await expect(foreign).rejects.toThrow('refused with 403')
  expect(server.counts.ws).toBe(0)
})

test('a route for operators needs a token, and its socket ends when the device is revoked', async () => {
  const { route } = echo('operator')
  await using server = await startStreamServer({ sockets: [route] })
  await expect(connectSocket(server.url, '/ws/echo/right', { headers: {} })).rejects.toThrow('refused with 401')
  const client = await connectSocket(server.url, '/ws/echo/right')
  server.revoke('d1')
  await server.clock.advance(1000)
  expect(await client.closed).toMatchObject({ code: 4401 })
})

test('a caller whom the feature checked stays connected through a reload, until the daemon stops', async () => {
  const { route, seen, opened } = echo()
  await using server = await startStreamServer({ sockets: [route] })
  const client = await connectSocket(server.url, '/ws/echo/right', { headers: {} })
  server.reload({ require_pairing: true })
  client.socket.send('still here')
  await client.messages.first(1)
  server.streams.closeAll('the daemon stops')
  expect(await client.closed).toMatchObject({ code: 1001 })
  expect(seen).toEqual(['still here', 'closed'])
  opened[0]?.send('after the end')
})
