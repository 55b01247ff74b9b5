import { createServer, request as send } from 'node:http'
import { connect } from 'node:net'
import { type Listening, listenOnLoopback } from '@sluice/testkit/loopback-server'
import { afterEach, describe, expect, test } from 'vitest'
import { addressesOf } from '../testing/world.ts'
import { createUrlGuard } from '../url-guard.ts'
import { EgressProxy } from './egress-proxy.ts'
import type { Pass } from './pass.ts'

const closing: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of closing.splice(0)) await one.close()
})

const NAMES = { 'site.test': ['127.0.0.1'], 'inside.test': ['127.0.0.1'] }

const arrange = async (publicAddresses = addressesOf({ names: NAMES, exempt: ['site.test', '127.0.0.1'] }), allowed = ['*']) => {
  const seen: { url: string | undefined; headers: NodeJS.Dict<string | string[]>; body: string }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    seen.push({ url: request.url, headers: request.headers, body })
    const [, status] = request.url?.split('/as?') ?? []
    if (status !== undefined) return void request.socket.end(`HTTP/1.1 ${decodeURIComponent(status)}\r\n\r\n`)
    if (request.url === '/asks') response.writeHead(407, { 'proxy-authenticate': 'Basic' })
    else response.writeHead(201, { 'x-own': 'yes', 'keep-alive': 'timeout=5' })
    response.end('answer')
  })
  server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'))
  const site: Listening = await listenOnLoopback(server)
  const proxy = await EgressProxy.start(createUrlGuard({ publicAddresses }, allowed))
  closing.push(proxy, site)
  return { proxy, pass: proxy.issue(), port: new URL(site.url).port, seen }
}

const authorization = ({ username, password }: Pick<Pass, 'username' | 'password'>) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

interface RequestParts {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** Sends a request to the proxy like a browser does. */
const ask = async (proxy: EgressProxy, url: string, { method = 'GET', headers = {}, body = '' }: RequestParts = {}) => {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number | undefined
    headers: NodeJS.Dict<string | string[]>
    text: string
  }>()
  const { hostname, port } = new URL(proxy.url)
  const request = send({ host: hostname, port, path: url, method, headers, agent: false }, async (response) => {
    let text = ''
    for await (const chunk of response) text += chunk
    resolve({ status: response.statusCode, headers: response.headers, text })
  })
  request.on('error', reject)
  request.end(body)
  return promise
}

/** Sends raw text and returns the answer up to the end of its headers. */
const raw = async (proxy: EgressProxy, text: string): Promise<string> => {
  const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  socket.write(text)
  let answer = ''
  for await (const chunk of socket) {
    answer += chunk
    if (answer.includes('\r\n\r\n')) break
  }
  return answer
}

const tunnel = (target: string, pass?: Pass) =>
  `CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${pass ? `proxy-authorization: ${authorization(pass)}\r\n` : ''}\r\n`

describe('EgressProxy', () => {
  test("forwards a request without the proxy's own headers", async () => {
    const { proxy, pass, port, seen } = await arrange()
    const headers = { 'proxy-authorization': authorization(pass), 'proxy-connection': 'keep-alive', 'x-mine': '1', host: 'evil.test' }
    const answer = await ask(proxy, `http://site.test:${port}/a?b=c`, {
      method: 'POST',
      headers: { ...headers, connection: 'x-hop', 'x-hop': '1' },
      body: 'hello',
    })
    expect(answer).toMatchObject({ status: 201, text: 'answer', headers: { 'x-own': 'yes' } })
    expect(seen).toMatchObject([{ url: '/a?b=c', body: 'hello', headers: { host: `site.test:${port}`, 'x-mine': '1' } }])
    for (const name of ['proxy-authorization', 'proxy-connection', 'x-hop']) expect(seen[0]?.headers).not.toHaveProperty(name)
    expect(pass.uses).toBe(1)
  })

  test('refuses requests without a valid pass', async () => {
    const { proxy, pass, port, seen } = await arrange()
    const wrong = authorization({ username: pass.username, password: 'x' })
    for (const headers of [{}, { 'proxy-authorization': wrong }, { 'proxy-authorization': 'Bearer x' }]) {
      expect(await ask(proxy, `http://site.test:${port}/`, { headers })).toMatchObject({ status: 407 })
    }
    expect(await raw(proxy, tunnel(`site.test:${port}`))).toMatch(/^HTTP\/1.1 407 /)
    proxy.revoke(pass)
    expect(await raw(proxy, tunnel(`site.test:${port}`, pass))).toMatch(/^HTTP\/1.1 407 /)
    expect(seen).toEqual([])
  })

  test('refuses a host that is not public and records the refusal once', async () => {
    const { proxy, pass, port, seen } = await arrange()
    const headers = { 'proxy-authorization': authorization(pass) }
    for (let times = 0; times < 2; times++) {
      expect(await ask(proxy, `http://inside.test:${port}/`, { headers })).toMatchObject({
        status: 403,
        text: "Sluice: 'inside.test' is not a public address\n",
      })
      expect(await raw(proxy, tunnel(`inside.test:${port}`, pass))).toMatch(/^HTTP\/1.1 403 /)
    }
    expect(pass.takeRefusals()).toEqual([{ host: 'inside.test', reason: "'inside.test' is not a public address" }])
    expect(pass.takeRefusals()).toEqual([])
    expect(seen).toEqual([])
  })

  test('connects to the address it checked, without resolving the name again', async () => {
    let lookups = 0
    const { proxy, pass, port, seen } = await arrange(async () => {
      lookups++
      return [{ address: '127.0.0.1', family: 4 }]
    })
    // No resolver knows this name, so only the guard can have resolved it.
    const answer = await ask(proxy, `http://rebinding.invalid:${port}/`, { headers: { 'proxy-authorization': authorization(pass) } })
    expect([answer.status, lookups, seen.length]).toEqual([201, 1, 1])
    expect(await raw(proxy, tunnel(`rebinding.invalid:${port}`, pass))).toMatch(/^HTTP\/1.1 200 /)
    expect(lookups).toBe(2)
  })

  test('a tunnel passes bytes in both directions', async () => {
    const { proxy, pass, port, seen } = await arrange()
    const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1')
    socket.write(tunnel(`site.test:${port}`, pass))
    const chunks = socket[Symbol.asyncIterator]()
    expect(String((await chunks.next()).value)).toMatch(/^HTTP\/1.1 200 /)
    socket.write('GET /through HTTP/1.1\r\nhost: x\r\n\r\n')
    expect(String((await chunks.next()).value)).toContain('201 Created')
    expect(seen).toMatchObject([{ url: '/through' }])
    socket.destroy()
  })

  test.each(['/', 'ftp://site.test/', 'https://site.test/', 'http://'])('refuses %j as a proxy request', async (url) => {
    const { proxy, pass } = await arrange()
    expect(await ask(proxy, url, { headers: { 'proxy-authorization': authorization(pass) } })).toMatchObject({ status: 400 })
  })

  test('answers 502 for an unreachable site and for one that asks for the pass', async () => {
    const { proxy, pass, port } = await arrange()
    const headers = { 'proxy-authorization': authorization(pass) }
    expect(await ask(proxy, 'http://nowhere.test/', { headers })).toMatchObject({ status: 502 })
    expect(await ask(proxy, 'http://127.0.0.1:1/', { headers })).toMatchObject({ status: 502 })
    const answer = await ask(proxy, `http://site.test:${port}/asks`, { headers })
    expect(answer.status).toBe(502)
    expect(answer.headers).not.toHaveProperty('proxy-authenticate')
    expect(await raw(proxy, tunnel('nowhere.test:443', pass))).toMatch(/^HTTP\/1.1 502 /)
    expect(pass.takeRefusals()).toEqual([])
  })

  test.each(['000', '099', '101 x\r\nupgrade: x\r\nconnection: upgrade'])(
    'answers 502 for an answer that is not valid HTTP: %j',
    async (status) => {
      const { proxy, pass, port } = await arrange()
      const headers = { 'proxy-authorization': authorization(pass) }
      const answer = await ask(proxy, `http://site.test:${port}/as?${encodeURIComponent(status)}`, { headers })
      expect(answer).toMatchObject({ status: 502, text: `Sluice: site.test:${port} sent an answer that is not valid HTTP\n` })
    },
  )

  test('close ends tunnels and may be called twice', async () => {
    const { proxy, pass, port } = await arrange()
    const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1')
    const ended = new Promise((resolve) => socket.on('close', resolve))
    socket.on('error', () => undefined)
    socket.write(tunnel(`site.test:${port}`, pass))
    await new Promise((resolve) => socket.once('data', resolve))
    await proxy.close()
    await ended
    await proxy.close()
  })
})
