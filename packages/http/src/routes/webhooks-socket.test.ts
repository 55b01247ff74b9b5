/** The webhooks of chat platforms behind a real socket. */

import { request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import type { Received } from '@sluice/delivery'
import { AppError, type Channel, type Observation, type Raw } from '@sluice/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { type TestGatewayOptions, testGateways } from '../testing.ts'

const gateway = testGateways()
let server: Server | undefined
afterEach(() => {
  server?.close()
  server?.closeAllConnections()
})

/** Serves a channel whose requests need the header `x-key: good`. */
async function serveChannel(options: TestGatewayOptions = {}) {
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
  const started = createAdaptorServer({ fetch: made.fetch as never }) as Server
  server = started
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve))
  const { port } = started.address() as AddressInfo
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers: { 'x-key': 'good' }, ...init })
  return { made, port, call, received, urls }
}

describe('a webhook over a socket', () => {
  test('keeps a verified request and answers with the security headers', async () => {
    const { call, received, urls } = await serveChannel()
    const response = await call('/x?a=1', { body: 'hello' })
    expect([response.status, await response.text()]).toEqual([200, '{"status":"ok"}'])
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(received).toMatchObject([{ verified: { by: 'x-key' }, messages: [{ text: 'hello' }] }])
    expect(urls).toEqual(['?a=1'])
  })

  test('answers a wrong signature with 401 and reports the request', async () => {
    const { call, made } = await serveChannel()
    const response = await call('/x', { body: 'hello', headers: { 'x-key': 'bad' } })
    expect([response.status, await response.json()]).toEqual([401, { error: 'Invalid signature', code: 'unauthorized' }])
    expect(made.observations.filter(({ kind }) => kind === 'request')).toMatchObject([{ method: 'POST', route: '/x', status: 401 }])
  })

  test('answers a body over the limit with 413, announced or in chunks', async () => {
    const { call, port } = await serveChannel()
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
    const { call } = await serveChannel({ bodyBytesMax: 100 })
    const refused = await call('/x', { body: 'x'.repeat(60) })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    expect((await call('/x', { body: 'x'.repeat(50) })).status).toBe(200)
  })

  test('evicts an unfinished body for a request that arrives whole', async () => {
    const { call, port } = await serveChannel({ bodyBytesMax: 100 })
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
    const { call, received } = await serveChannel()
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
    const { call, port, made } = await serveChannel()
    await new Promise<void>((resolve) => {
      const sending = request({ port, path: '/x', method: 'POST', headers: { 'x-key': 'good', 'content-length': 50 } })
      sending.on('error', () => resolve())
      sending.write('half', () => sending.destroy(new Error('gone')))
    })
    expect((await call('/x', { body: 'whole' })).status).toBe(200)
    expect(made.logs.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('reports the request with its trace', async () => {
    const { call, made } = await serveChannel()
    await call('/x', { body: 'a', headers: { 'x-key': 'good', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` } })
    const [seen] = made.observations.filter((o): o is Extract<Observation, { kind: 'request' }> => o.kind === 'request')
    expect(seen).toMatchObject({ status: 200, span: { trace: { traceId: 'a'.repeat(32), parentId: 'b'.repeat(16) } } })
  })
})
