import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { testClock } from '@sluice/testkit/clock'
import { until } from '@sluice/testkit/until'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { FrameSocket, type FrameSocketOptions } from './frame-socket.ts'

let server: WebSocketServer
let url: string
let peers: WebSocket[]
/** What the peers received. */
let received: unknown[]
let isMute: boolean
let pongs: number
const abort = new AbortController()

beforeEach(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1', autoPong: false })
  ;[peers, received, isMute, pongs] = [[], [], false, 0]
  server.on('connection', (peer) => {
    peers.push(peer)
    peer.on('message', (data) => received.push(JSON.parse(String(data))))
    peer.on('ping', (data) => void (!isMute && peer.pong(data, false, () => pongs++)))
  })
  await once(server, 'listening')
  url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/?ticket=secret-ticket`
})
afterEach(() => {
  for (const peer of server.clients) peer.terminate()
  server.close()
})

const open = (options: Partial<FrameSocketOptions> = {}) =>
  FrameSocket.open(url, { platform: 'x', clock: testClock(), signal: abort.signal, onFrame: () => undefined, ...options })

test('frames arrive in order, and text other than a JSON object has no members', async () => {
  const frames: unknown[] = []
  const socket = await open({ onFrame: (frame) => void frames.push(frame) })
  for (const text of ['{"n":1}', 'no json', '7', '{"n":2}']) peers[0]?.send(text)
  await expect.poll(() => frames).toEqual([{ n: 1 }, {}, {}, { n: 2 }])
  socket.send({ hello: 1 })
  await expect.poll(() => received).toEqual([{ hello: 1 }])
})

test('the request that opens the connection has the given headers', async () => {
  const asked = once(server, 'connection')
  await open({ headers: { authorization: 'Bearer secret-token' } })
  const [, request] = (await asked) as [WebSocket, IncomingMessage]
  expect(request.headers.authorization).toBe('Bearer secret-token')
})

test('the end has its code and reason, and later frames are dropped', async () => {
  const socket = await open()
  peers[0]?.close(4004, 'bad token')
  expect(await socket.ended).toEqual({ code: 4004, detail: '(4004, bad token)' })
  socket.send({ hello: 1 })
  socket.close()
  expect(socket.isOpen).toBe(false)
})

test('reads nothing further while framesMax frames are handled', async () => {
  const waiting: (() => void)[] = []
  const socket = await open({ framesMax: 2, onFrame: () => new Promise((resolve) => waiting.push(resolve)) })
  for (let frame = 0; frame < 500; frame++) peers[0]?.send(JSON.stringify({ frame, fill: 'x'.repeat(20_000) }))
  await expect.poll(() => waiting.length).toBeGreaterThanOrEqual(2)
  await new Promise((resolve) => setTimeout(resolve, 50))
  // A read that was under way may still bring a few.
  expect(waiting.length).toBeLessThan(50)
  await expect
    .poll(
      () => {
        for (const handled of waiting) handled()
        return waiting.length
      },
      { interval: 1 },
    )
    .toBe(500)
  socket.close()
})

test('drain waits for frames that are handled', async () => {
  const [arrived, handled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const onFrame = () => {
    arrived.resolve()
    return handled.promise
  }
  const socket = await open({ onFrame })
  peers[0]?.send('{}')
  await arrived.promise
  const drained = socket.drain()
  expect(socket.isOpen).toBe(true)
  handled.resolve()
  await drained
  expect(await socket.ended).toMatchObject({ code: 1000 })
})

test('a peer that falls silent is given up, and one that answers pings is not', async () => {
  const clock = testClock()
  const socket = await open({ clock, pingMs: 4000 })
  for (let pings = 1; pings <= 15; pings++) {
    await clock.advance(4000)
    await until(() => pongs === pings)
  }
  expect(socket.isOpen).toBe(true)
  isMute = true
  await clock.advance(61_000)
  expect(await socket.ended).toMatchObject({ code: 1006, detail: expect.stringMatching(/^\(silent for \d+ s\)$/) })
})

test('an address that cannot be reached is unavailable, and the error does not contain it', async () => {
  const error = await FrameSocket.open('ws://127.0.0.1:9/?ticket=secret-ticket', {
    platform: 'x',
    clock: testClock(),
    signal: abort.signal,
    onFrame: () => undefined,
  }).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'unavailable' })
  expect(String(error)).not.toContain('secret-ticket')
  url = 'https://x.example/'
  await expect(open()).rejects.toMatchObject({ code: 'unavailable' })
})

test('an abort closes the connection', async () => {
  const stop = new AbortController()
  const socket = await open({ signal: stop.signal })
  stop.abort()
  expect(await socket.ended).toMatchObject({ code: 1000 })
  await expect(open({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'unavailable' })
})
