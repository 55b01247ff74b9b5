import type { Received } from '@sluice/delivery'
import { AppError, type Channel, hmacSha256, type Raw, verifyHmac, type Webhook } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { parseJson } from '../body.ts'
import { type TestGatewayOptions, testGateways } from '../testing.ts'

const SECRET = 'webhook-secret'
const gateway = testGateways()

const sign = (body: string | Uint8Array) => hmacSha256(SECRET, body).toString('hex')

/** A signed channel, what was received on it, and in which order its parts were asked. */
function bench(change: Partial<Webhook> = {}, options: TestGatewayOptions = {}) {
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
  test('what is signed is kept with what proved it and as it came, and answered 200', async () => {
    const { made, post, received } = bench()
    expect(await bodyOf(await post('{"text": "hi"}'))).toEqual([200, { status: 'ok' }])
    expect(received).toMatchObject([{ verified: { by: 'X-Signature' }, receivedAtMs: made.clock.nowMs(), messages: [{ text: 'hi' }] }])
    expect(Buffer.from(received[0]?.raw ?? []).toString()).toBe('{"text": "hi"}')
    expect(made.observations).toContainEqual({ kind: 'ingress', channel: 'x', verdict: 'kept', signed: true })
  })

  test('needs no token and has no rate limit', async () => {
    const { post } = bench()
    for (let request = 0; request < 100; request++) expect((await post('{"text":"hi"}')).status).toBe(200)
  })

  test('a wrong signature is 401 before anything is parsed, and the log says why', async () => {
    const { made, post, steps, received } = bench()
    expect(await bodyOf(await post('{"text":"hi"}', { 'x-signature': sign('other') }))).toEqual([
      401,
      { error: 'Invalid signature', code: 'unauthorized' },
    ])
    expect(steps).toEqual(['verify'])
    expect(received).toEqual([])
    expect(made.logs).toContainEqual(expect.objectContaining({ level: 'warn', fields: { channel: 'x', reason: 'X-Signature is wrong' } }))
    expect(made.observations).toContainEqual(expect.objectContaining({ kind: 'ingress', verdict: 'unauthorized' }))
  })

  test('a signature header that comes twice is refused', async () => {
    const { post } = bench()
    const signature = sign('{"text":"hi"}')
    expect((await post('{"text":"hi"}', { 'x-signature': `${signature}, ${signature}` })).status).toBe(401)
  })

  test('the proof is over the bytes: what is signed and no UTF-8 is verified, then 400', async () => {
    const { post, steps } = bench()
    const bytes = Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d)
    expect((await post(bytes)).status).toBe(400)
    expect(steps).toEqual(['verify', 'parse'])
  })

  test('what is no JSON is 400, an event that is no message 200', async () => {
    const { made, post } = bench()
    expect((await post('{')).status).toBe(400)
    expect((await post('{"text":""}')).status).toBe(200)
    expect(made.observations).toContainEqual(expect.objectContaining({ kind: 'ingress', verdict: 'ignored' }))
  })

  test('a body over the limit is 413 before the proof is looked at, whether or not its size was announced', async () => {
    const { made, post, steps } = bench()
    expect((await post('x'.repeat(2001), {})).status).toBe(413)
    const unannounced = await made.request('/x', { method: 'POST', body: 'x'.repeat(2001), headers: { 'content-length': '' } })
    expect(unannounced.status).toBe(413)
    expect(steps).toEqual([])
    expect((await post(`{"text":"${'x'.repeat(1989)}"}`)).status).toBe(200)
  })

  test('what cannot be kept is 503 with a time to come back', async () => {
    const { post } = bench(
      {},
      { receive: () => Promise.reject(new AppError('unavailable', 'too many messages wait', { retryAfterSecs: 30 })) },
    )
    const response = await post('{"text":"hi"}')
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('30')
  })

  test('what was used before is 401 like any other refusal', async () => {
    const { post } = bench(
      {},
      { receive: () => Promise.reject(new AppError('unauthorized', 'Invalid signature', { cause: 'used before' })) },
    )
    expect(await bodyOf(await post('{"text":"hi"}'))).toEqual([401, { error: 'Invalid signature', code: 'unauthorized' }])
  })

  test('a fault of the channel is 500, and tells nothing', async () => {
    const { post } = bench({
      parse() {
        throw new TypeError('reading the secret webhook-secret')
      },
    })
    expect(await bodyOf(await post('{"text":"hi"}'))).toEqual([500, { error: 'Internal error', code: 'internal' }])
  })

  test("the provider's check is answered as the channel says, as text and never as a page", async () => {
    const { made } = bench({ handshake: (url) => new Response(url.searchParams.get('challenge')) })
    const response = await made.request('/x?challenge=%3Cb%3E')
    expect(await response.text()).toBe('<b>')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  })

  test('without a check, GET is 405', async () => {
    const { made } = bench()
    expect((await made.request('/x')).status).toBe(405)
  })

  test('without a secret it is counted on loopback, and not served where others reach it', async () => {
    const unsigned = { unsigned: 'app_secret', verify: () => ({ by: 'nothing: app_secret is not set' }) }
    const local = bench(unsigned)
    expect((await local.post('{"text":"hi"}', {})).status).toBe(200)
    expect(local.made.observations).toContainEqual(expect.objectContaining({ kind: 'ingress', signed: false }))
    const open = bench(unsigned, { demandsProof: true })
    const response = await open.post('{"text":"hi"}', {})
    expect(response.status).toBe(503)
    expect(((await response.json()) as { error: string }).error).toContain('[channels_config.x] app_secret')
    expect(open.received).toEqual([])
  })

  test('without a secret it is served where others reach it for as long as that is allowed, and not one request longer', async () => {
    const unsigned = { unsigned: 'app_secret', verify: () => ({ by: 'nothing: app_secret is not set' }) }
    const { made, post } = bench(unsigned, { demandsProof: true, config: { allow_unsigned_webhooks: true } })
    expect((await post('{"text":"hi"}', {})).status).toBe(200)
    made.reload({ allow_unsigned_webhooks: false })
    expect((await post('{"text":"hi"}', {})).status).toBe(503)
    made.reload({ allow_unsigned_webhooks: true })
    expect((await post('{"text":"hi"}', {})).status).toBe(200)
  })

  test('without a secret, a web page is not let in', async () => {
    const { post, received } = bench({ unsigned: 'app_secret', verify: () => ({ by: 'nothing: app_secret is not set' }) })
    expect((await post('{"text":"hi"}', { origin: 'https://evil.example' })).status).toBe(403)
    const rebound = { host: 'evil.example:42617', origin: 'http://evil.example:42617' }
    expect((await post('{"text":"hi"}', rebound)).status).toBe(403)
    expect(received).toEqual([])
    expect((await post('{"text":"hi"}', { host: 'tunnel.example' })).status).toBe(200)
    expect((await post('{"text":"hi"}', {})).status).toBe(200)
  })
})
