import type { Received } from '@sluice/delivery'
import { AppError, type Channel, hmacSha256, type Raw, verifyHmac, type Webhook } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { parseJson } from '../request/body.ts'
import { type TestGatewayOptions, testGateways } from '../testing.ts'

const SECRET = 'webhook-secret'
const gateway = testGateways()

const sign = (body: string | Uint8Array) => hmacSha256(SECRET, body).toString('hex')

/** A signed channel, the messages received on it, and the order in which its functions ran. */
function served(change: Partial<Webhook> = {}, options: TestGatewayOptions = {}) {
  const steps: string[] = []
  const received: Received[] = []
  const webhook: Webhook = {
    path: '/x',
    bodyBytesMax: 2000,
    verify({ headers, body }: Raw) {
      steps.push('verify')
      const signature = headers['x-signature'] ?? ''
      if (!verifyHmac(SECRET, [body], signature)) throw new AppError('unauthorized', 'Invalid signature', { cause: 'X-Signature is wrong' })
      return { by: 'X-Signature' }
    },
    parse({ body }) {
      steps.push('parse')
      const { text } = parseJson(body) as { text: string }
      return text ? [{ id: 'm1', account: 'a', sender: 's', to: { to: 's' }, text }] : []
    },
    sample: () => ({ headers: {}, body: '' }),
    ...change,
  }
  const channel: Channel = { name: 'x', allow: ['*'], limits: { text: 10, unit: 'utf16' }, webhook, send: async () => ({ id: 'p' }) }
  const made = gateway({
    snapshot: { channels: [channel] },
    async receive(_channel, request) {
      received.push(request)
      return { kept: request.messages.length, duplicate: 0, denied: 0 }
    },
    ...options,
  })
  const post = (body: string | Uint8Array, headers: Record<string, string> = { 'x-signature': sign(body) }) =>
    made.request('/x', { method: 'POST', body, headers })
  return { made, post, steps, received }
}

const bodyOf = async (response: Response) => [response.status, await response.json()]

describe('the webhook of a channel', () => {
  test('keeps a signed request with its proof and its bytes, and answers 200', async () => {
    const { made, post, received } = served({ parsesBodyAlone: true })
    expect(await bodyOf(await post('{"text": "hi"}'))).toEqual([200, { status: 'ok' }])
    expect(received).toMatchObject([{ verified: { by: 'X-Signature' }, receivedAtMs: made.clock.nowMs(), messages: [{ text: 'hi' }] }])
    expect(Buffer.from(received[0]?.raw ?? []).toString()).toBe('{"text": "hi"}')
    expect(made.observations).toContainEqual({ kind: 'ingress', channel: 'x', verdict: 'kept', signed: true })
  })

  test('keeps the message in place of the request where more than the body decides it', async () => {
    const { post, received } = served()
    await post('{"text": "hi"}')
    expect(received).toMatchObject([{ raw: null, messages: [{ text: 'hi' }] }])
  })

  test('gives the answer of the channel once the messages are kept, to repeats too', async () => {
    const { post, steps } = served({
      answer: ({ body }) => {
        steps.push('answer')
        return body.length > 13 ? new Response('<Response/>', { headers: { 'content-type': 'text/xml' } }) : undefined
      },
    })
    for (let repeat = 0; repeat < 2; repeat++) {
      const response = await post('{"text":"hello"}')
      expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([200, 'text/xml', '<Response/>'])
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    }
    expect(await bodyOf(await post('{"text":"hi"}'))).toEqual([200, { status: 'ok' }])
    expect(steps.slice(0, 3)).toEqual(['verify', 'parse', 'answer'])
    expect((await post('{"text":"hello"}', { 'x-signature': sign('other') })).status).toBe(401)
    expect(steps.at(-1)).toBe('verify')
  })

  test('needs no token and has no rate limit', async () => {
    const { post } = served()
    for (let request = 0; request < 100; request++) expect((await post('{"text":"hi"}')).status).toBe(200)
  })

  test('answers a wrong signature with 401 before parsing, and logs the reason', async () => {
    const { made, post, steps, received } = served()
    expect(await bodyOf(await post('{"text":"hi"}', { 'x-signature': sign('other') }))).toEqual([
      401,
      { error: 'Invalid signature', code: 'unauthorized' },
    ])
    expect(steps).toEqual(['verify'])
    expect(received).toEqual([])
    expect(made.logs).toContainEqual(expect.objectContaining({ level: 'warn', fields: { channel: 'x', reason: 'X-Signature is wrong' } }))
    expect(made.observations).toContainEqual(expect.objectContaining({ kind: 'ingress', verdict: 'unauthorized' }))
  })

  test('refuses a signature header that is sent twice', async () => {
    const { post } = served()
    const signature = sign('{"text":"hi"}')
    expect((await post('{"text":"hi"}', { 'x-signature': `${signature}, ${signature}` })).status).toBe(401)
  })

  test('verifies bytes that are not UTF-8, then answers 400', async () => {
    const { post, steps } = served()
    const bytes = Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d)
    expect((await post(bytes)).status).toBe(400)
    expect(steps).toEqual(['verify', 'parse'])
  })

  test('answers 400 if the body is not JSON, and 200 if it has no message', async () => {
    const { made, post } = served()
    expect((await post('{')).status).toBe(400)
    expect((await post('{"text":""}')).status).toBe(200)
    expect(made.observations).toContainEqual(expect.objectContaining({ kind: 'ingress', verdict: 'ignored' }))
  })

  test('answers a body over the limit with 413 before verifying it', async () => {
    const { made, post, steps } = served()
    expect((await post('x'.repeat(2001), {})).status).toBe(413)
    const unannounced = await made.request('/x', { method: 'POST', body: 'x'.repeat(2001), headers: { 'content-length': '' } })
    expect(unannounced.status).toBe(413)
    expect(steps).toEqual([])
    expect((await post(`{"text":"${'x'.repeat(1989)}"}`)).status).toBe(200)
  })

  test('hands over the reports of a verified request, and answers 503 if they cannot be kept', async () => {
    const reports = [{ message: 'p1', error: 'undeliverable' }]
    const taken: unknown[] = []
    const report = async (_channel: unknown, given: unknown) => void taken.push(given)
    const { post } = served({ reports: () => reports }, { report })
    expect((await post('{}', { 'x-signature': 'wrong' })).status).toBe(401)
    expect((await post('{}')).status).toBe(200)
    expect(taken).toEqual([reports])
    const full = served({ reports: () => reports }, { report: () => Promise.reject(new AppError('unavailable', 'The disk is full')) })
    expect((await full.post('{}')).status).toBe(503)
  })

  test('answers 503 with Retry-After if the messages cannot be kept', async () => {
    const { post } = served(
      {},
      { receive: () => Promise.reject(new AppError('unavailable', 'too many messages wait', { retryAfterSecs: 30 })) },
    )
    const response = await post('{"text":"hi"}')
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('30')
  })

  test('answers a replayed request with 401', async () => {
    const { post } = served(
      {},
      { receive: () => Promise.reject(new AppError('unauthorized', 'Invalid signature', { cause: 'used before' })) },
    )
    expect(await bodyOf(await post('{"text":"hi"}'))).toEqual([401, { error: 'Invalid signature', code: 'unauthorized' }])
  })

  test('answers a bug of the channel with 500 and a fixed text', async () => {
    const { post } = served({
      parse() {
        throw new TypeError('reading the secret webhook-secret')
      },
    })
    expect(await bodyOf(await post('{"text":"hi"}'))).toEqual([500, { error: 'Internal error', code: 'internal' }])
  })

  test("answers the platform's check as text, never as a page", async () => {
    const { made } = served({ handshake: (url) => new Response(url.searchParams.get('challenge')) })
    const response = await made.request('/x?challenge=%3Cb%3E')
    expect(await response.text()).toBe('<b>')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  })

  test('answers GET with 405 if the channel has no check', async () => {
    const { made } = served()
    expect((await made.request('/x')).status).toBe(405)
  })

  test('without a secret is served only on loopback, and counted as unsigned', async () => {
    const unsigned = { unsigned: 'app_secret', verify: () => ({ by: 'nothing: app_secret is not set' }) }
    const local = served(unsigned)
    expect((await local.post('{"text":"hi"}', {})).status).toBe(200)
    expect(local.made.observations).toContainEqual(expect.objectContaining({ kind: 'ingress', signed: false }))
    const open = served(unsigned, { refusesUnsigned: true })
    const response = await open.post('{"text":"hi"}', {})
    expect(response.status).toBe(503)
    expect(((await response.json()) as { error: string }).error).toContain('[channels_config.x] app_secret')
    expect(open.received).toEqual([])
  })

  test('without a secret is served to other machines only while that is allowed', async () => {
    const unsigned = { unsigned: 'app_secret', verify: () => ({ by: 'nothing: app_secret is not set' }) }
    const { made, post } = served(unsigned, { refusesUnsigned: true, config: { allow_unsigned_webhooks: true } })
    expect((await post('{"text":"hi"}', {})).status).toBe(200)
    made.reload({ allow_unsigned_webhooks: false })
    expect((await post('{"text":"hi"}', {})).status).toBe(503)
    made.reload({ allow_unsigned_webhooks: true })
    expect((await post('{"text":"hi"}', {})).status).toBe(200)
  })

  test('without a secret refuses web pages', async () => {
    const { post, received } = served({ unsigned: 'app_secret', verify: () => ({ by: 'nothing: app_secret is not set' }) })
    expect((await post('{"text":"hi"}', { origin: 'https://evil.example' })).status).toBe(403)
    const rebound = { host: 'evil.example:42617', origin: 'http://evil.example:42617' }
    expect((await post('{"text":"hi"}', rebound)).status).toBe(403)
    expect(received).toEqual([])
    expect((await post('{"text":"hi"}', { host: 'tunnel.example' })).status).toBe(200)
    expect((await post('{"text":"hi"}', {})).status).toBe(200)
  })
})
