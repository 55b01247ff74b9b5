import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { defineRoute } from '@sluice/sdk'
import { processorMs } from '@sluice/testkit/processor-time'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { type TestGateway, type TestGatewayOptions, testGateways } from '../testing.ts'
import { controlAddress } from './control-address.ts'
import { type Listening, listen } from './listen.ts'

const gateway = testGateways()
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

interface Daemon extends TestGateway {
  readonly server: Listening
  readonly token: string
}

async function daemon(options: TestGatewayOptions = {}): Promise<Daemon> {
  const made = gateway({ ...options, config: { webhook_rate_limit_per_minute: 0, ...options.config } })
  const { token } = await made.pair()
  const server = await listen({ ...made.parts, host: '127.0.0.1', port: 0 })
  closers.push(() => server.close(0))
  return { ...made, server, token }
}

/** A plain socket with the bytes that it received and whether it has ended. */
function dial(port: number) {
  const socket: Socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const received = { text: '', ended: false }
  socket.setEncoding('latin1')
  socket.on('data', (text) => {
    received.text += text
  })
  socket.on('end', () => {
    received.ended = true
    socket.end()
  })
  socket.on('error', () => {
    received.ended = true
  })
  closers.push(async () => socket.destroy())
  // `once` of node:events would reject if an error came first.
  const closed = new Promise((resolve) => socket.once('close', resolve))
  return { socket, received, closed }
}

const head = (daemon: Daemon, ...more: string[]): string =>
  [
    `POST /webhook HTTP/1.1`,
    `Host: 127.0.0.1:${daemon.server.port}`,
    `Authorization: Bearer ${daemon.token}`,
    'Content-Type: application/json',
    ...more,
    '',
    '',
  ].join('\r\n')

const BODY = '{"message":"hello"}'
const whole = (daemon: Daemon, ...more: string[]): string => head(daemon, `Content-Length: ${BODY.length}`, ...more) + BODY

const statuses = (text: string): string[] => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status ?? '')
const isServing = async ({ server }: Daemon): Promise<void> => {
  expect((await fetch(`${server.url}/health`)).status).toBe(200)
}

/** The longest processor time of one tick of the event loop while `work` ran, without the time of other programs. */
async function longestTickMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let lastMs = processorMs()
  const timer = setInterval(() => {
    const nowMs = processorMs()
    longest = Math.max(longest, nowMs - lastMs)
    lastMs = nowMs
  }, 1)
  await work()
  clearInterval(timer)
  return longest
}

describe('a whole request over a socket', () => {
  test('is answered with its length and the security headers', async () => {
    const made = await daemon()
    const response = await fetch(`${made.server.url}/webhook`, {
      method: 'POST',
      headers: { authorization: `Bearer ${made.token}`, 'content-type': 'application/json' },
      body: BODY,
    })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(0)
    expect(await response.json()).toMatchObject({ response: 're: hello' })
  })

  test('may arrive in single bytes', async () => {
    const made = await daemon()
    const { socket, received } = dial(made.server.port)
    for (const byte of whole(made, 'Connection: close')) {
      socket.write(byte)
      await new Promise(setImmediate)
    }
    await expect.poll(() => received.ended).toBe(true)
    expect(statuses(received.text)).toEqual(['200'])
    expect(made.turns).toHaveLength(1)
  })

  test('is answered in order when many arrive in one write', async () => {
    const made = await daemon()
    const { socket, received } = dial(made.server.port)
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${made.server.port}\r\n\r\n`
    socket.write(whole(made) + get('/health') + get('/unknown') + whole(made) + get('/metrics'))
    await expect.poll(() => statuses(received.text)).toEqual(['200', '200', '404', '200', '200'])
    expect(made.turns).toHaveLength(2)
  })

  test('runs one turn if its sender closes its half of the connection', async () => {
    const made = await daemon()
    const { socket, received } = dial(made.server.port)
    socket.end(whole(made))
    await expect.poll(() => [received.ended, made.turns.length]).toEqual([true, 1])
    await isServing(made)
  })

  test('may be chunked', async () => {
    const made = await daemon()
    const { socket, received } = dial(made.server.port)
    socket.write(`${head(made, 'Transfer-Encoding: chunked')}9\r\n{"message\r\na\r\n":"hello"}\r\n0\r\n\r\n`)
    await expect.poll(() => statuses(received.text)).toEqual(['200'])
  })
})

describe('the control socket', () => {
  const OPERATOR = 'cli:alice'

  async function controlled(name = 'data', options: TestGatewayOptions = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'control-'))
    closers.push(async () => rmSync(folder, { recursive: true, force: true }))
    const dataDir = join(folder, name)
    mkdirSync(dataDir)
    const made = gateway(options)
    const open = async () => {
      const subscribers = { sse: 0, ws: 0, dropped: 0 }
      const server = await listen({ ...made.parts, subscribers, host: '127.0.0.1', port: 0, control: { dataDir, operator: OPERATOR } })
      closers.push(() => server.close(0))
      return server
    }
    return { ...made, dataDir, open, server: await open() }
  }

  /** Sends a request to the socket; resolves to its status and its parsed body. */
  function ask(dataDir: string, method: string, path: string, headers: Record<string, string> = {}, body?: string) {
    const address = controlAddress(dataDir)
    return new Promise<{ status: number | undefined; body: Record<string, unknown> }>((resolve, reject) => {
      const sent = request({ socketPath: address.path, method, path, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece) => {
          text += piece
        })
        response.on('end', () => resolve({ status: response.statusCode, body: JSON.parse(text) }))
      })
      sent.on('error', reject).end(body)
    }).finally(address.release)
  }

  test('makes its peer an operator without a token, whatever the limits are', async () => {
    const { dataDir, server, turns } = await controlled('data', {
      config: { webhook_rate_limit_per_minute: 1, webhook_secret: 's' },
    })
    for (let count = 0; count < 3; count += 1) {
      const body = JSON.stringify({ message: 'hello' })
      const answer = await ask(dataDir, 'POST', '/webhook', { 'content-type': 'application/json' }, body)
      expect(answer).toMatchObject({ status: 200, body: { response: 're: hello' } })
    }
    expect(turns).toMatchObject([{ owner: 'local', caller: 'cli' }, {}, {}])
    expect(await ask(dataDir, 'GET', '/api/status')).toMatchObject({ status: 200, body: { url: server.url, pid: process.pid } })
    expect((await fetch(`${server.url}/api/status`)).status).toBe(401)
  })

  test('records the operator, and no header makes a peer of the port one', async () => {
    const { dataDir, runtime, server } = await controlled()
    await runtime.approvals.start()
    const question = { runId: 'run', stepId: 'call', gate: 'tool', workflow: 'shell', title: 't', message: 'm', timeoutSecs: 0 } as const
    await runtime.approvals.open({ ...question, owner: 'a device' })
    const path = '/api/approvals/run/call'
    const headers = { 'content-type': 'application/json', operator: OPERATOR }
    const body = JSON.stringify({ approved: true })
    expect((await fetch(server.url + path, { method: 'POST', headers, body })).status).toBe(401)
    expect(await ask(dataDir, 'POST', path, headers, body)).toMatchObject({ status: 200, body: { state: 'approved' } })
    expect(await ask(dataDir, 'GET', path)).toMatchObject({ body: { by: OPERATOR } })
  })

  test('keeps WebSockets, which end when the daemon ends its streams', async () => {
    const { dataDir, server } = await controlled()
    const createConnection = () => connect(controlAddress(dataDir).path)
    const socket = new WebSocket('ws://localhost/ws/chat?session_id=a', { createConnection })
    const [first] = await once(socket, 'message')
    expect(JSON.parse(String(first))).toMatchObject({ type: 'session_start', session_id: 'a' })
    const closed = once(socket, 'close')
    socket.send(JSON.stringify({ type: 'message', content: 'hello' }))
    expect(JSON.parse(String((await once(socket, 'message'))[0]))).toMatchObject({ type: 'done', full_response: 're: hello' })
    await server.endStreams('the test is over')
    expect((await closed)[0]).toBe(1001)
  })

  test('is a private file, replaces a stale one, and is removed when the server closes', async () => {
    const { dataDir, open, server } = await controlled()
    const file = join(dataDir, 'control.sock')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await server.close(0)
    expect(() => statSync(file)).toThrow('ENOENT')
    writeFileSync(file, 'left by a crash')
    const next = await open()
    expect(await ask(dataDir, 'GET', '/health')).toMatchObject({ status: 200 })
    await next.close(0)
  })

  test.runIf(process.platform === 'linux')('is reached in a folder whose path is too long for a socket', async () => {
    const { dataDir } = await controlled('d'.repeat(200))
    expect(await ask(dataDir, 'GET', '/health')).toMatchObject({ status: 200 })
  })

  test('that cannot be opened is reported, and the port is served', async () => {
    const { dataDir, logs, open, server } = await controlled()
    await server.close(0)
    mkdirSync(join(dataDir, 'control.sock'))
    expect((await fetch(`${(await open()).url}/health`)).status).toBe(200)
    expect(logs.filter(({ level }) => level === 'warn')).toEqual([
      expect.objectContaining({ message: expect.stringContaining('The control socket could not be opened') }),
    ])
  })
})

describe('a body over the limit', () => {
  test('is 413 before it is read if its length is announced', async () => {
    const made = await daemon()
    const { socket, received, closed } = dial(made.server.port)
    socket.write(head(made, 'Content-Length: 1000000000'))
    await expect.poll(() => statuses(received.text)).toEqual(['413'])
    await closed
    await isServing(made)
  })

  test('costs no memory and does not block the event loop if it is sent anyway', async () => {
    const made = await daemon()
    const { socket, received, closed } = dial(made.server.port)
    const rssBefore = process.memoryUsage().rss
    const megabyte = Buffer.alloc(1_048_576, 'x')
    const longest = await longestTickMs(async () => {
      socket.write(head(made, 'Content-Length: 1000000000'))
      for (let sent = 0; sent < 1000 && socket.writable && !socket.destroyed; sent++) {
        if (!socket.write(megabyte)) await Promise.race([once(socket, 'drain').catch(() => {}), closed])
      }
      await closed
    })
    expect(statuses(received.text)).toEqual(['413'])
    expect(process.memoryUsage().rss - rssBefore).toBeLessThan(150 * 1_048_576)
    // Collecting garbage takes some of it.
    expect(longest).toBeLessThan(300)
    await isServing(made)
  })

  test('is 413 as soon as its chunks exceed the limit', async () => {
    const made = await daemon()
    const { socket, received, closed } = dial(made.server.port)
    socket.write(head(made, 'Transfer-Encoding: chunked'))
    const chunk = `2000\r\n${'x'.repeat(8192)}\r\n`
    for (let sent = 0; sent < 9; sent++) socket.write(chunk)
    await expect.poll(() => statuses(received.text)).toEqual(['413'])
    await closed
    expect(made.turns).toEqual([])
    await isServing(made)
  })

  test('reaches an ordinary client as 413, not as a broken connection', async () => {
    const made = await daemon()
    const headers = { authorization: `Bearer ${made.token}`, 'content-type': 'application/json' }
    for (const bytes of [65_600, 1_000_000]) {
      const response = await fetch(`${made.server.url}/webhook`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ message: 'x'.repeat(bytes) }),
      })
      expect(response.status).toBe(413)
      expect(await response.json()).toMatchObject({ code: 'too_large' })
    }
  })
})

describe('a client that goes away', () => {
  test('in the middle of its body leaves no turn and no log line', async () => {
    const made = await daemon()
    for (let client = 0; client < 20; client++) {
      const { socket } = dial(made.server.port)
      socket.write(`${head(made, 'Content-Length: 100')}{"mess`)
      await once(socket, 'connect')
      await new Promise(setImmediate)
      socket.destroy()
    }
    await isServing(made)
    expect(made.turns).toEqual([])
    expect(made.logs).toEqual([])
  })

  test('during its turn does not end the turn', async () => {
    const running = Promise.withResolvers<string>()
    const made = await daemon({ reply: () => running.promise })
    const { socket } = dial(made.server.port)
    socket.write(whole(made, 'X-Idempotency-Key: k'))
    await expect.poll(() => made.turns.length).toBe(1)
    socket.destroy()
    await wait(20)
    running.resolve('done')
    const retry = dial(made.server.port)
    retry.socket.write(whole(made, 'X-Idempotency-Key: k'))
    await expect.poll(() => retry.received.text).toContain('"status":"duplicate"')
    expect(made.turns).toHaveLength(1)
  })
})

describe('a connection that does not speak HTTP', () => {
  test.each([
    ['nonsense', 'nonsense\r\n\r\n', '400'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00', '400'],
    ['a bad header', 'GET /health HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n', '400'],
    ['two lengths', 'POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', '400'],
    ['a length and chunks', 'POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', '400'],
    ['a negative length', 'POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', '400'],
    ['no Host', 'GET /health HTTP/1.1\r\n\r\n', '400'],
    ['an invalid Host', 'GET /health HTTP/1.1\r\nHost: a b\r\n\r\n', '400'],
    ['an invalid target', 'GET \\\\evil HTTP/1.1\r\nHost: x\r\n\r\n', '400'],
    ['headers of 20 KiB', `GET /health HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_480)}\r\n\r\n`, '431'],
    ['five thousand headers', `GET /health HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(5000)}\r\n`, '431'],
  ])('is refused for %s with an answer that shows no internals', async (_what, request, status) => {
    const made = await daemon()
    const { socket, received } = dial(made.server.port)
    socket.write(request, 'latin1')
    await expect.poll(() => statuses(received.text)).toEqual([status])
    expect(received.text).not.toMatch(/node|hono|at \w+ \(|\.ts|\.js/i)
    socket.destroy()
    await isServing(made)
  })

  test('may ask for another upgrade, which is an ordinary request', async () => {
    const made = await daemon()
    const { socket, received } = dial(made.server.port)
    socket.write('GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')
    await expect.poll(() => statuses(received.text)).toEqual(['200'])
  })

  test('cannot use the daemon as a proxy with CONNECT', async () => {
    const made = await daemon()
    const { socket, received } = dial(made.server.port)
    socket.write('CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n')
    await expect.poll(() => received.ended).toBe(true)
    await isServing(made)
  })

  test('does not block the event loop, even with many clients at once', async () => {
    const made = await daemon()
    const longest = await longestTickMs(async () => {
      const clients = Array.from({ length: 50 }, () => dial(made.server.port))
      for (const [index, { socket }] of clients.entries()) socket.write(index % 2 ? 'nonsense\r\n\r\n' : 'x'.repeat(40_000))
      await expect.poll(() => clients.every(({ received }) => received.ended)).toBe(true)
    })
    // Collecting garbage takes some of it.
    expect(longest).toBeLessThan(300)
    await isServing(made)
  })
})

describe('a slow client', () => {
  const fast = { headersTimeout: 100, requestTimeout: 300, connectionsCheckingInterval: 20 }

  test('loses its connection if its headers take too long', async () => {
    const made = gateway()
    const server = await listen({ ...made.parts, host: '127.0.0.1', port: 0, timeouts: fast })
    closers.push(() => server.close(0))
    const { socket, received } = dial(server.port)
    socket.write('GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    await expect.poll(() => received.ended).toBe(true)
    expect(statuses(received.text)).toEqual(['408'])
  })

  test('loses its connection if its body takes too long', async () => {
    const made = gateway()
    const { token } = await made.pair()
    const server = await listen({ ...made.parts, host: '127.0.0.1', port: 0, timeouts: fast })
    closers.push(() => server.close(0))
    const slow = { ...made, server, token }
    const { socket, received } = dial(server.port)
    socket.write(`${head(slow, 'Content-Length: 100')}{"mess`)
    await expect.poll(() => received.ended).toBe(true)
    expect(statuses(received.text)).toEqual(['408'])
    expect(made.turns).toEqual([])
    await isServing(slow)
  })
})

test('a client that does not read its answer loses its connection, and one that waits for an answer keeps it', async () => {
  const bytes = 64 * 1024 * 1024
  const ended = Promise.withResolvers<void>()
  const large = defineRoute({
    method: 'GET',
    path: '/api/large',
    summary: 'An answer that is larger than the buffers of a connection',
    auth: 'client',
    answers: {},
    handle({ signal }) {
      signal.addEventListener('abort', () => ended.resolve(), { once: true })
      return 'x'.repeat(bytes)
    },
  })
  const answer = Promise.withResolvers<string>()
  const made = gateway({ snapshot: { routes: [large] }, reply: () => answer.promise })
  const { token } = await made.pair()
  const timeouts = { keepAliveTimeout: 60_000, unreadTimeout: 50 }
  const server = await listen({ ...made.parts, host: '127.0.0.1', port: 0, timeouts })
  closers.push(() => server.close(0))
  const waiting = dial(server.port)
  waiting.socket.write(`${head({ ...made, server, token }, 'Content-Length: 15')}{"message":"m"}`)
  await expect.poll(() => made.turns.length).toBe(1)
  const unread = dial(server.port)
  unread.socket.pause()
  unread.socket.write(`GET /api/large HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await ended.promise
  unread.socket.resume()
  await unread.closed
  expect(unread.received.text.length).toBeLessThan(bytes)
  answer.resolve('late')
  await expect.poll(() => statuses(waiting.received.text)).toEqual(['200'])
})

describe('the server', () => {
  test('names the address that is taken, and the cure', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    closers.push(async () => taken.close())
    const { port } = taken.address() as AddressInfo
    const made = gateway()
    await expect(listen({ ...made.parts, host: '127.0.0.1', port })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(`127.0.0.1:${port} is taken`),
    })
  })

  const hasIPv6 = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))
  test.runIf(hasIPv6)('listens on IPv6 with a URL in brackets', async () => {
    const made = gateway()
    const server = await listen({ ...made.parts, host: '::1', port: 0 })
    closers.push(() => server.close(0))
    expect(server.url).toBe(`http://[::1]:${server.port}`)
    expect((await fetch(`${server.url}/health`)).status).toBe(200)
  })

  test('accepts at most max_connections, also after a reload changed it', async () => {
    const made = await daemon({ config: { max_connections: 2 } })
    const [first, second] = [dial(made.server.port), dial(made.server.port)]
    await Promise.all([once(first.socket, 'connect'), once(second.socket, 'connect')])
    await wait(20)
    const third = dial(made.server.port)
    third.socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
    await third.closed
    expect(third.received.text).toBe('')
    made.reload({ max_connections: 3 })
    await expect
      .poll(async () => {
        const another = dial(made.server.port)
        another.socket.write('GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
        await another.closed
        return statuses(another.received.text)
      })
      .toEqual(['200'])
  })

  test('finishes running requests when it closes, and accepts no more', async () => {
    const running = Promise.withResolvers<string>()
    const made = await daemon({ reply: () => running.promise })
    const busy = dial(made.server.port)
    busy.socket.write(whole(made))
    const idle = dial(made.server.port)
    idle.socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
    await expect.poll(() => [made.turns.length, statuses(idle.received.text)]).toEqual([1, ['200']])
    const closing = made.server.close(10_000)
    await idle.closed
    await expect(fetch(`${made.server.url}/health`)).rejects.toThrow()
    running.resolve('done')
    await Promise.all([closing, busy.closed])
    expect(statuses(busy.received.text)).toEqual(['200'])
  })

  test('destroys connections that outlast the grace', async () => {
    const made = await daemon({ reply: () => new Promise(() => {}) })
    const { socket, closed } = dial(made.server.port)
    socket.write(whole(made))
    await expect.poll(() => made.turns.length).toBe(1)
    await made.server.close(50)
    await closed
    await made.server.close(50)
  })
})
