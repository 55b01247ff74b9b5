import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Link } from './link.ts'
import { type Listening, listenOnLoopback } from './loopback-server.ts'

const SILENCE_MS = 100

let link: Link
let echo: Listening
let server: ReturnType<typeof createServer>
let accepted: Socket[]
beforeEach(async () => {
  link = new Link()
  accepted = []
  server = createServer((socket) => {
    accepted.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => socket.write(bytes))
  })
  echo = await link.through(() => listenOnLoopback(server))
})
afterEach(async () => {
  await link.close()
  for (const socket of accepted) socket.destroy()
  await echo.close()
})

async function open(): Promise<Socket> {
  const socket = connect(echo.port, '127.0.0.1').on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

async function echoOf(socket: Socket, text: string): Promise<string> {
  socket.write(text)
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  return bytes.toString()
}

const closeOf = (socket: Socket | undefined): Promise<void> => new Promise((resolve) => socket?.once('close', () => resolve()))

/** Whether nothing comes back, not even an end. */
async function isSilent(socket: Socket, text: string): Promise<boolean> {
  const heard = new Promise<false>((resolve) => {
    for (const event of ['data', 'end', 'close']) socket.once(event, () => resolve(false))
  })
  if (text !== '') socket.write(text)
  return Promise.race([sleep(SILENCE_MS, true), heard])
}

test('a server that starts inside `through` gives the address of the link', async () => {
  expect(echo.url).toBe(`http://127.0.0.1:${echo.port}`)
  expect(echo.port).not.toBe((server.address() as { readonly port: number }).port)
  expect(await echoOf(await open(), 'hello')).toBe('hello')
  expect(link).toMatchObject({ servers: 1, opened: 1 })
})

test('the end of either side passes', async () => {
  const socket = await open()
  await echoOf(socket, 'hello')
  const ended = once(socket, 'end')
  accepted[0]?.end()
  await ended
  const serverClosed = closeOf(accepted[0])
  socket.end()
  await serverClosed
})

test('a reset breaks open connections and refuses others until the link is restored at the same port', async () => {
  const socket = await open()
  await echoOf(socket, 'hello')
  const [closed, serverClosed] = [closeOf(socket), closeOf(accepted[0])]
  await link.cut('reset')
  await Promise.all([closed, serverClosed])
  await expect(once(connect(echo.port, '127.0.0.1'), 'connect')).rejects.toThrow('ECONNREFUSED')
  await link.restore()
  expect(await echoOf(await open(), 'again')).toBe('again')
})

test('a silent cut ends nothing, swallows everything, and leaves old connections dead', async () => {
  const before = await open()
  await echoOf(before, 'hello')
  await link.cut('silent')
  expect(await isSilent(before, 'lost')).toBe(true)
  const meanwhile = await open()
  expect(await isSilent(meanwhile, 'lost')).toBe(true)
  expect(link.swallowed).toBe(1)
  expect(accepted).toHaveLength(1)
  const serverClosed = closeOf(accepted[0])
  await link.restore()
  await serverClosed
  expect(await Promise.all([isSilent(before, 'dead'), isSilent(meanwhile, 'dead')])).toEqual([true, true])
  expect(await echoOf(await open(), 'again')).toBe('again')
  before.destroy()
  meanwhile.destroy()
})

test('the end of a client does not pass a silent cut', async () => {
  const socket = await open()
  await echoOf(socket, 'hello')
  await link.cut('silent')
  socket.end()
  expect(await isSilent(socket, '')).toBe(true)
  expect(accepted[0]?.readableEnded).toBe(false)
  socket.destroy()
})

test('a server outside of `through` is reached directly', async () => {
  const direct = createHttpServer((_request, response) => response.end('direct'))
  const { url, close } = await listenOnLoopback(direct)
  expect(await (await fetch(url)).text()).toBe('direct')
  expect(link.servers).toBe(1)
  await close()
})

test('a delay holds bytes back in both directions, and keeps their order when it ends', async () => {
  const socket = await open()
  link.delayMs = SILENCE_MS
  const startedMs = performance.now()
  expect(await echoOf(socket, 'slow')).toBe('slow')
  // Timers may be a little early.
  expect(performance.now() - startedMs).toBeGreaterThan(2 * SILENCE_MS - 5)
  let heard = ''
  socket.on('data', (bytes: Buffer) => {
    heard += bytes.toString()
  })
  socket.write('first ')
  await sleep(SILENCE_MS / 2)
  link.delayMs = 0
  socket.write('second')
  await expect.poll(() => heard).toBe('first second')
})

test('no other link takes the port of a link during a cut', async () => {
  await link.cut('reset')
  const others = Array.from({ length: 3 }, () => new Link())
  const rival = createServer()
  try {
    for (const other of others) expect(await other.portTo(echo.port)).not.toBe(echo.port)
    const claimed = once(rival, 'error')
    rival.listen(echo.port, '127.0.0.2')
    // A system without a second address of loopback has no claims.
    expect(['EADDRINUSE', 'EADDRNOTAVAIL']).toContain((await claimed)[0].code)
  } finally {
    for (const other of others) await other.close()
  }
  await link.restore()
  expect(await echoOf(await open(), 'hello')).toBe('hello')
  await link.close()
  const free = createServer().listen(echo.port, '127.0.0.1')
  await once(free, 'listening')
  free.close()
})
