import type { LimitedClient } from '@sluice/config'
import type { StubRoute } from '@sluice/runtime'
import { AppError, defineRoute, type Observer, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()

const open = (method: Route['method'], path: Route['path'], handle: Route['handle'], more: Partial<Route> = {}): Route =>
  defineRoute({ method, path, summary: 'A test route', auth: 'open', answers: { 200: { description: 'Done' } }, ...more, handle }) as Route

test('/health is 200 and /ready is 503 while the store cannot write', async () => {
  const { request, runtime } = gateway()
  expect([(await request('/health')).status, (await request('/ready')).status]).toEqual([200, 200])
  const refused = new AppError('unavailable', 'The store cannot keep this now: database or disk is full')
  runtime.store.probe = () => Promise.reject(refused)
  runtime.store.health = () => ({ lastCommitMs: 0, fault: 'database or disk is full' })
  const [health, ready] = [await request('/health'), await request('/ready')]
  expect([health.status, ready.status]).toEqual([200, 503])
  const store = { state: 'failing', reason: 'database or disk is full' }
  expect(await health.json()).toMatchObject({ status: 'degraded', store })
  expect(await ready.json()).toMatchObject({ ready: false, reason: refused.message, status: 'degraded', store })
})

describe('a request without a route', () => {
  test('is answered with 404 as JSON', async () => {
    const { request, observations } = gateway()
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/api/unknown'],
      ['POST', '/unknown'],
      ['DELETE', '/api'],
      ['GET', '/webhook/'],
    ] as const) {
      const response = await request(path, { method })
      expect(response.status, path).toBe(404)
      expect(await response.json()).toEqual({ error: expect.any(String), code: 'not_found' })
    }
    expect(observations).toHaveLength(5)
    expect(observations[0]).toMatchObject({ kind: 'request', route: 'unmatched', status: 404 })
  })

  test('is answered with 405 and Allow if the path has another method', async () => {
    const { request } = gateway()
    const webhook = await request('/webhook')
    expect([webhook.status, webhook.headers.get('allow')]).toEqual([405, 'POST'])
    expect(await webhook.json()).toMatchObject({ code: 'method_not_allowed' })
    const session = await request('/api/sessions/x', { method: 'PATCH' })
    expect([session.status, session.headers.get('allow')]).toEqual([405, 'GET, PUT, DELETE, HEAD'])
    expect((await request('/health', { method: 'OPTIONS' })).status).toBe(405)
  })

  test('names the build that has the feature of the route', async () => {
    const stub: StubRoute = {
      method: 'POST',
      path: '/chatapp',
      code: 'not_compiled',
      detail: 'POST /chatapp needs a feature this build leaves out',
      fields: { feature: 'channel-chatapp', build: 'run `npm run build:full`' },
    }
    const { request } = gateway({ snapshot: { stubs: [stub] } })
    const response = await request('/chatapp', { method: 'POST', body: '{}' })
    expect(response.status).toBe(404)
    expect(await response.json()).toEqual({ error: stub.detail, code: 'not_compiled', ...stub.fields })
  })
})

test('a route with callsPerMinute limits each address, also across a reload', async () => {
  const limited = open('POST', '/x/limited', () => 'ok', { callsPerMinute: 2, body: v.object({}) })
  const { request, reload, clock } = gateway({ snapshot: { routes: [limited, open('POST', '/x/free', () => 'ok')] } })
  const call = async (path = '/x/limited', peer = '10.0.0.1') => (await request(path, { method: 'POST', peer, body: 'nonsense' })).status
  expect([await call(), await call(), await call(), await call()]).toEqual([400, 400, 429, 429])
  reload({})
  expect(await call()).toBe(429)
  expect(await call('/x/limited', '10.0.0.2')).toBe(400)
  expect([await call('/x/free'), await call('/x/free'), await call('/x/free')]).toEqual([200, 200, 200])
  await clock.advance(60_000)
  expect(await call()).toBe(400)
})

test('a client calls routes without a limit of their own 1,200 times in a minute, with all linked devices; an operator has no limit', async () => {
  const routes = ['/x/a', '/x/b'].map((path) => defineRoute({ ...open('GET', path as '/x/a', () => 'ok'), auth: 'client' }))
  const { request, pair, clock, runtime } = gateway({ snapshot: { routes } })
  const devices = [await pair('a', null, 'client'), await pair('b', null, 'client'), await pair('c', null, 'client')] as const
  const operator = await pair('o', null, 'operator')
  const key = ({ device }: { readonly device: string }) => `device:${device}`
  const principal = runtime.people.principal.bind(runtime.people)
  const linked: readonly string[] = [key(devices[0]), key(devices[1])]
  Object.assign(runtime.people, {
    principal: (client: LimitedClient) => (linked.includes(client.client) ? { ...client, person: key(devices[0]) } : principal(client)),
  })
  const call = async ({ token }: { readonly token: string }, path = '/x/a') =>
    (await request(path, { headers: { authorization: `Bearer ${token}` } })).status
  const count = async (by: { readonly token: string }, times: number) => {
    const answers: number[] = []
    for (let at = 0; at < times; at++) answers.push(await call(by, at % 2 === 0 ? '/x/a' : '/x/b'))
    return answers.filter((status) => status === 200).length
  }
  expect(await count(devices[0], 700)).toBe(700)
  expect(await count(devices[1], 501)).toBe(500)
  expect(await call(devices[0])).toBe(429)
  expect(await call(devices[2])).toBe(200)
  expect(await count(operator, 1201)).toBe(1201)
  await clock.advance(60_000)
  expect(await call(devices[0])).toBe(200)
})

describe('every answer', () => {
  test('carries the security headers, also refusals and answers of features', async () => {
    const routes = [
      open('GET', '/x/redirect', () => Response.redirect('http://127.0.0.1/')),
      open('GET', '/x/own', () => new Response('x', { headers: { 'cache-control': 'max-age=1' } })),
    ]
    const { request } = gateway({ snapshot: { routes } })
    for (const path of ['/health', '/metrics', '/unknown', '/api/status', '/x/redirect', '/x/own']) {
      const { headers } = await request(path)
      expect(headers.get('x-content-type-options'), path).toBe('nosniff')
      expect(headers.get('x-frame-options'), path).toBe('DENY')
      expect(headers.get('referrer-policy'), path).toBe('no-referrer')
      expect(headers.get('content-security-policy'), path).toContain("default-src 'none'")
      expect(headers.get('cache-control'), path).toBe(path === '/x/own' ? 'max-age=1' : 'no-store')
    }
  })

  test('to HEAD is the answer to GET without its body', async () => {
    const { request } = gateway()
    const response = await request('/health', { method: 'HEAD' })
    expect([response.status, await response.text()]).toEqual([200, ''])
  })
})

describe('a route of a feature', () => {
  test('gets its params, query, body, raw bytes, trace and client', async () => {
    const seen: unknown[] = []
    const route = defineRoute({
      method: 'POST',
      path: '/x/:room/say',
      summary: 'A test route',
      auth: 'operator',
      query: v.object({ loud: v.optional(v.picklist(['yes', 'no']), 'no') }),
      body: v.object({ text: v.string() }),
      answers: { 200: { description: 'Said' } },
      handle({ params, query, body, raw, device, client, trace, url, headers, signal }) {
        seen.push({
          params,
          query,
          body,
          raw: Buffer.from(raw).toString(),
          device,
          path: url.pathname,
          type: headers.get('content-type'),
          aborted: signal.aborted,
        })
        return { client, trace: trace.traceId }
      },
    })
    const { request, pair } = gateway({ snapshot: { routes: [route] } })
    const { token, device } = await pair()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await request('/x/a%2Fb/say?loud=yes&other=1', { method: 'POST', headers, body: '{"text":"hi","extra":1}' })
    expect(await response.json()).toEqual({
      client: expect.stringMatching(/^[0-9a-f]{32}$/),
      trace: expect.stringMatching(/^[0-9a-f]{32}$/),
    })
    expect(seen).toEqual([
      {
        params: { room: 'a/b' },
        query: { loud: 'yes' },
        body: { text: 'hi' },
        raw: '{"text":"hi","extra":1}',
        device,
        path: '/x/a%2Fb/say',
        type: 'application/json',
        aborted: false,
      },
    ])
  })

  test('refuses input that is not valid without repeating its value', async () => {
    const route = open('POST', '/x', () => ({}), { body: v.object({ port: v.pipe(v.number(), v.minValue(1)) }) })
    const { request } = gateway({ snapshot: { routes: [route] } })
    const headers = { 'content-type': 'application/json' }
    const response = await request('/x', { method: 'POST', headers, body: '{"port":"hunter2"}' })
    expect(response.status).toBe(400)
    const text = await response.text()
    expect(text).toContain('`port` must be a number of at least 1')
    expect(text).not.toContain('hunter2')
  })

  test('may declare a larger or a smaller body limit', async () => {
    const routes = [
      open('POST', '/x/large', ({ raw }) => raw.length, { body: v.unknown(), bodyBytesMax: 1_048_576 }),
      open('POST', '/x/small', () => 1, { body: v.unknown(), bodyBytesMax: 4 }),
    ]
    const { request } = gateway({ snapshot: { routes } })
    const post = (path: string, bytes: number) =>
      request(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: `"${'x'.repeat(bytes - 2)}"` })
    expect(await (await post('/x/large', 1_048_576)).json()).toBe(1_048_576)
    expect((await post('/x/large', 1_048_577)).status).toBe(413)
    expect((await post('/x/small', 4)).status).toBe(200)
    expect((await post('/x/small', 5)).status).toBe(413)
  })

  test('answers a refusal with its code, fields and Retry-After', async () => {
    const refuse = () => {
      throw new AppError('unavailable', 'Too busy', { retryAfterSecs: 7, fields: { queue: 3, code: 'forged' } })
    }
    const { request, logs } = gateway({ snapshot: { routes: [open('GET', '/x', refuse)] } })
    const response = await request('/x')
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '7'])
    expect(await response.json()).toEqual({ error: 'Too busy', code: 'unavailable', queue: 3, retry_after: 7 })
    expect(logs).toMatchObject([{ level: 'warn', fields: { route: '/x', code: 'unavailable' } }])
  })

  test.each([
    [
      'thrown',
      () => {
        throw new TypeError('hunter2')
      },
    ],
    ['rejected', () => Promise.reject(new TypeError('hunter2'))],
    ['not an Error', () => Promise.reject('hunter2')],
  ] as const)('answers an error that is %s with 500 and a fixed text', async (_how, handle) => {
    const { request, logs } = gateway({ snapshot: { routes: [open('GET', '/x', handle)] } })
    const response = await request('/x')
    expect(response.status).toBe(500)
    expect(await response.json()).toEqual({ error: 'Internal error', code: 'internal' })
    expect(logs).toMatchObject([{ level: 'error' }])
  })

  test('cannot replace a route that exists', async () => {
    const routes = [open('GET', '/health', () => 'mine'), open('GET', '/x', () => 'first'), open('GET', '/x', () => 'second')]
    const { request, logs } = gateway({ snapshot: { routes } })
    expect(await (await request('/health')).json()).toMatchObject({ status: 'ok' })
    expect(await (await request('/x')).json()).toBe('first')
    expect(logs.map(({ fields }) => fields.route)).toEqual(['GET /health', 'GET /x'])
  })

  test('with auth local refuses remote peers, proxies, foreign names and foreign pages', async () => {
    const { request } = gateway({ snapshot: { routes: [open('POST', '/x', () => 'done', { auth: 'local' })] } })
    const status = async (init: { peer?: string; headers?: Record<string, string> } = {}) =>
      (await request('/x', { method: 'POST', ...init })).status
    expect(await status()).toBe(200)
    expect(await status({ peer: '::1' })).toBe(200)
    expect(await status({ peer: '::ffff:127.0.0.1' })).toBe(200)
    expect(await status({ peer: '203.0.113.9' })).toBe(403)
    expect(await status({ peer: '203.0.113.9', headers: { 'x-forwarded-for': '127.0.0.1' } })).toBe(403)
    for (const name of ['x-forwarded-for', 'x-real-ip', 'forwarded', 'via'])
      expect(await status({ headers: { [name]: '127.0.0.1' } }), name).toBe(403)
    expect(await status({ headers: { host: 'rebound.example' } })).toBe(403)
    expect(await status({ headers: { origin: 'https://evil.example' } })).toBe(403)
  })
})

describe('GET /metrics', () => {
  const renderer: Observer = {
    name: 'textmetrics',
    record() {},
    render: async () => ({ contentType: 'text/plain; version=0.0.4; charset=utf-8', body: 'requests_total 1\n' }),
  }

  test('explains in a comment how to enable metrics, without authentication', async () => {
    const response = await gateway().request('/metrics', { peer: '203.0.113.9', headers: { host: 'public.example' } })
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(await response.text()).toBe('# Textmetrics backend not enabled. Set [observability] backend = "textmetrics" in config.\n')
  })

  test('names the build that has metrics where this one leaves them out', async () => {
    const features = [{ feature: 'observability-metrics', compiled: false }] as never
    const response = await gateway({ snapshot: { features } }).request('/metrics')
    expect(await response.text()).toMatch(/^# This build leaves metrics out\. .*npm run build -- .*--features .*metrics.*\n$/)
  })

  test('answers the metrics of the observer', async () => {
    const response = await gateway({ snapshot: { observers: [renderer] } }).request('/metrics')
    expect([response.headers.get('content-type'), await response.text()]).toEqual([
      'text/plain; version=0.0.4; charset=utf-8',
      'requests_total 1\n',
    ])
  })

  test('answers other machines with 403 if metricsLoopbackOnly is set', async () => {
    const { request } = gateway({ snapshot: { observers: [renderer], metricsLoopbackOnly: true } })
    expect((await request('/metrics')).status).toBe(200)
    expect((await request('/metrics', { peer: '203.0.113.9' })).status).toBe(403)
    expect((await request('/metrics', { headers: { 'x-forwarded-for': '203.0.113.9' } })).status).toBe(403)
  })
})

test('/health works with a closed store and names whether pairing is required', async () => {
  const made = gateway({ config: { require_pairing: false } })
  await made.store.close()
  const response = await made.request('/health', { peer: '203.0.113.9' })
  expect([response.status, await response.json()]).toMatchObject([200, { status: 'ok', require_pairing: false }])
})

test('a reload is in force from the next request on', async () => {
  const made = gateway()
  expect(await (await made.request('/health')).json()).toMatchObject({ require_pairing: true })
  expect((await made.request('/api/status')).status).toBe(401)
  made.reload({ require_pairing: false })
  expect(await (await made.request('/health')).json()).toMatchObject({ require_pairing: false })
  expect((await made.request('/api/status')).status).toBe(200)
})
