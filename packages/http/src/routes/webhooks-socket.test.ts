/** The webhooks of chat platforms behind a real socket. */

import { createServer, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { Received } from '@sluice/delivery'
import { AppError, type Channel, type Observation, type Raw, type Webhook } from '@sluice/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { type TestGatewayOptions, testGateways } from '../testing.ts'

const gateway = testGateways()
let server: Server | undefined
afterEach(() => {
  server?.close()
  server?.closeAllConnections()
})

/** Serves a channel whose requests need the header `x-key: good`, directly as the daemon does, or by the steps of its route. */
async function serveChannel(isDirect: boolean, options: TestGatewayOptions = {}, webhook: Partial<Webhook> = {}) {
  const received: Received[] = []
  const urls: string[] = []
  const channel: Channel = {
    name: 'x',
    allow: ['*'],
    limits: { text: 10, unit: 'utf16' },
    webhook: {
      path: '/x',
      bodyBytesMax: 100,
      verify({ headers, url }: Raw) {
        urls.push(url.search)
        if (headers['x-key'] !== 'good') throw new AppError('unauthorized', 'Invalid signature', { cause: 'x-key' })
        return { by: 'x-key' }
      },
      parse: ({ body }) => [{ id: 'm', account: 'a', sender: 's', to: { to: 's' }, text: Buffer.from(body).toString() }],
      sample: () => ({ headers: {}, body: '' }),
      ...webhook,
    },
    send: async () => ({ id: 'p' }),
  }
  const made = gateway({
    snapshot: { channels: [channel] },
    async receive(_channel, request) {
      received.push(request)
      return { kept: 1, duplicate: 0, denied: 0 }
    },
    ...options,
  })
  const byStep = getRequestListener(made.fetch as never, { overrideGlobalObjects: false }) as RequestListener
  const served = { directly: 0 }
  const started = createServer((incoming, outgoing) => {
    const direct = isDirect ? made.app().directRoute(incoming) : undefined
    if (direct) served.directly++
    void (direct ?? byStep)(incoming, outgoing)
  })
  server = started
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve))
  const { port } = started.address() as AddressInfo
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers: { 'x-key': 'good' }, ...init })
  return { made, port, call, received, urls, served }
}

describe.each([
  ['directly', true],
  ['by the steps of its route', false],
] as const)('a webhook over a socket, served %s', (_, isDirect) => {
  test('keeps a verified request and answers with the security headers', async () => {
    const { call, received, urls } = await serveChannel(isDirect)
    const response = await call('/x?a=1', { body: 'hello' })
    expect([response.status, await response.text()]).toEqual([200, '{"status":"ok"}'])
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(received).toMatchObject([{ verified: { by: 'x-key' }, messages: [{ text: 'hello' }] }])
    expect(urls).toEqual(['?a=1'])
  })

  test('answers a wrong signature with 401 and reports the request', async () => {
    const { call, made } = await serveChannel(isDirect)
    const response = await call('/x', { body: 'hello', headers: { 'x-key': 'bad' } })
    expect([response.status, await response.json()]).toEqual([401, { error: 'Invalid signature', code: 'unauthorized' }])
    expect(made.observations.filter(({ kind }) => kind === 'request')).toMatchObject([{ method: 'POST', route: '/x', status: 401 }])
  })

  test('answers a body over the limit with 413, announced or in chunks', async () => {
    const { call, port } = await serveChannel(isDirect)
    expect((await call('/x', { body: 'x'.repeat(101) })).status).toBe(413)
    const chunked = new Promise<number | undefined>((resolve, reject) => {
      const sending = request({ port, path: '/x', method: 'POST', headers: { 'x-key': 'good' } }, (response) =>
        resolve(response.statusCode),
      )
      sending.on('error', reject)
      for (let chunk = 0; chunk < 11; chunk++) sending.write('0123456789')
      sending.end()
    })
    expect(await chunked).toBe(413)
  })

  test('answers 503 with Retry-After if a channel has no room, and serves the next one', async () => {
    const { call } = await serveChannel(isDirect, { bodyBytesMax: 100 })
    const refused = await call('/x', { body: 'x'.repeat(60) })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    expect((await call('/x', { body: 'x'.repeat(50) })).status).toBe(200)
  })

  test('evicts an unfinished body for a request that arrives whole', async () => {
    const { call, port } = await serveChannel(isDirect, { bodyBytesMax: 100 })
    const unfinished = request({ port, path: '/x', method: 'POST', headers: { 'content-length': 100 } })
    const answered = new Promise<number | undefined>((resolve) => unfinished.on('response', ({ statusCode }) => resolve(statusCode)))
    unfinished.on('error', () => {})
    const sent = new Promise((resolve) => unfinished.write('x'.repeat(45), resolve))
    await sent
    // Both arrive over loopback, so the server reads the bytes of the first request first.
    expect((await call('/x', { body: 'hello' })).status).toBe(200)
    expect((await call('/x', { body: 'x'.repeat(50) })).status).toBe(200)
    expect(await answered).toBe(503)
    unfinished.destroy()
  })

  test('serves no other method and no other path', async () => {
    const { call, received } = await serveChannel(isDirect)
    for (const [path, method, status] of [
      ['/x', 'GET', 405],
      ['/x', 'PUT', 405],
      ['/x/', 'POST', 404],
      ['/X', 'POST', 404],
      ['/other', 'POST', 404],
    ] as const) {
      expect((await call(path, { method, ...(method !== 'GET' && { body: 'x' }) })).status, `${method} ${path}`).toBe(status)
    }
    expect(received).toEqual([])
  })

  test('survives a client that goes away in the middle of its body', async () => {
    const { call, port, made } = await serveChannel(isDirect)
    await new Promise<void>((resolve) => {
      const sending = request({ port, path: '/x', method: 'POST', headers: { 'x-key': 'good', 'content-length': 50 } })
      sending.on('error', () => resolve())
      sending.write('half', () => sending.destroy(new Error('gone')))
    })
    expect((await call('/x', { body: 'whole' })).status).toBe(200)
    expect(made.logs.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('reports the request with its trace', async () => {
    const { call, made } = await serveChannel(isDirect)
    await call('/x', { body: 'a', headers: { 'x-key': 'good', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` } })
    const [seen] = made.observations.filter((o): o is Extract<Observation, { kind: 'request' }> => o.kind === 'request')
    expect(seen).toMatchObject({ status: 200, span: { trace: { traceId: 'a'.repeat(32), parentId: 'b'.repeat(16) } } })
  })
})

test('both ways give the same answers', async () => {
  const failure = { receive: async () => Promise.reject(new AppError('unavailable', 'The disk is full', { retryAfterSecs: 7 })) }
  const cases: readonly [status: number, init: RequestInit, options?: TestGatewayOptions, webhook?: Partial<Webhook>][] = [
    [200, { body: 'hello' }],
    [200, { body: '' }],
    [401, { body: 'hello', headers: { 'x-key': 'bad' } }],
    [413, { body: 'x'.repeat(101) }],
    [503, { body: 'hello' }, failure],
    [500, { body: 'hello' }, { receive: async () => Promise.reject(new Error('a bug')) }],
    [400, { body: 'hello' }, {}, { parse: () => Promise.reject(new AppError('invalid_request', 'No message')) }],
    [401, { body: 'hello' }, {}, { verify: () => Promise.reject(new AppError('unauthorized', 'Invalid signature')) }],
    [202, { body: 'hello' }, {}, { answer: () => new Response('<ok/>', { status: 202, headers: { 'content-type': 'text/xml' } }) }],
    [500, { body: 'hello' }, {}, { answer: () => Promise.reject(new Error('no answer')) }],
    [200, { body: 'hello' }, {}, { unsigned: 'secret' }],
    [503, { body: 'hello' }, { refusesUnsigned: true }, { unsigned: 'secret' }],
    [403, { body: 'hello', headers: { 'x-key': 'good', origin: 'https://evil.example' } }, {}, { unsigned: 'secret' }],
  ]
  for (const [status, init, options = {}, webhook = {}] of cases) {
    const answers = []
    for (const isDirect of [true, false]) {
      const { call, made, served } = await serveChannel(isDirect, options, webhook)
      const response = await call('/x', init)
      const { date: _, ...headers } = Object.fromEntries(response.headers)
      const seen = made.observations.map((one) => (one.kind === 'request' ? [one.route, one.status] : one))
      const logs = made.logs.map(({ level, message }) => [level, message])
      answers.push({ status: response.status, headers, text: await response.text(), seen, logs })
      expect(served.directly).toBe(isDirect ? 1 : 0)
      server?.close()
      server?.closeAllConnections()
    }
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]?.status).toBe(status)
  }
})

test('a body in pieces is served directly, and an unusual host is left to the adaptor', async () => {
  const { port, served } = await serveChannel(true)
  const statusOf = (headers: Readonly<Record<string, string>>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sending = request({ port, path: '/x', method: 'POST', headers: { 'x-key': 'good', ...headers } }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      sending.on('error', reject)
      sending.end('hello')
    })
  expect(await statusOf({ 'content-length': '5', host: 'a b' })).toBe(400)
  expect(served.directly).toBe(0)
  expect(await statusOf({ 'transfer-encoding': 'chunked' })).toBe(200)
  expect(await statusOf({ 'content-length': '5' })).toBe(200)
  expect(served.directly).toBe(2)
})
