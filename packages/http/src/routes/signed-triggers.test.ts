import {
  AppError,
  bodyHmac,
  type FireOptions,
  HANDSHAKES,
  type HandshakeName,
  hmacSha256,
  SENDER_SCHEMES,
  Secret,
  type SenderName,
  type SopDispatch,
  type SopEvent,
  type Sops,
  signProof,
  type TriggerWebhook,
  type WebhookAuth,
} from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { type TestGatewayOptions, type TestRequest, testGateways } from '../testing.ts'

const gateway = testGateways()
const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='

const authOf = (name: SenderName): WebhookAuth => ({ name, scheme: SENDER_SCHEMES[name], secrets: [name], windowSecs: 300 })
const webhookOf = (name: SenderName, more: Partial<TriggerWebhook> = {}): TriggerWebhook => ({
  auth: authOf(name),
  role: 'operator',
  secrets: [new Secret(SECRET)],
  headers: [],
  ...more,
})

interface OpenOptions extends TestGatewayOptions {
  /** Called once, after the first request has found its triggers and before its body is read. */
  readonly whenMatched?: () => void
  /** The result of every event. */
  readonly fire?: () => readonly SopDispatch[]
}

/** A gateway with triggers on `/in`. Its engine answers a known event key as the store does: with the first result. */
function open(webhooks: readonly TriggerWebhook[], { whenMatched, fire, ...options }: OpenOptions = {}) {
  const fired: { event: SopEvent; also: FireOptions | undefined }[] = []
  let onMatched = whenMatched
  const results = new Map<string, readonly SopDispatch[]>()
  const sops: Partial<Sops> = {
    matches: (_, topic) => topic === '/in',
    loaded: async () => {},
    webhooks: () => {
      const found = [...webhooks]
      onMatched?.()
      onMatched = undefined
      return found
    },
    async fire(event, also) {
      fired.push({ event, also })
      if (fire) return fire()
      const result: SopDispatch[] = [{ sop: 'in', status: 'started', runId: `run-${fired.length}` }]
      const first = event.key === undefined ? result : (results.get(event.key) ?? result)
      if (event.key !== undefined) results.set(event.key, first)
      return first
    },
  }
  const made = gateway({ ...options, sops })
  const send = (body: string | Uint8Array, headers: Readonly<Record<string, string>>, init: TestRequest = {}, query = '') =>
    made.request(`/in${query}`, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers }, ...init })
  const sendAs = (name: SenderName, body: string, id = 'd-1', more: Readonly<Record<string, string>> = {}, init: TestRequest = {}) => {
    const url = 'http://127.0.0.1:42617/in'
    const { headers } = signProof(SENDER_SCHEMES[name], SECRET, { url, body, id, atMs: made.clock.nowMs() })
    return send(body, { ...headers, ...more }, init)
  }
  return { ...made, fired, send, sendAs }
}

describe('a trigger with the signature of a sender', () => {
  test('is fired by a signed request without a bearer token', async () => {
    const { sendAs, fired, clock } = open([webhookOf('github')])
    const response = await sendAs('github', '{"ref":"main"}', 'd-1', { 'x-github-event': 'push', cookie: 'a=b' })
    expect([response.status, await response.json()]).toEqual([
      200,
      { status: 'accepted', source: 'webhook', path: '/in', results: [{ sop: 'in', status: 'started', run_id: 'run-1' }] },
    ])
    expect(fired).toEqual([
      {
        event: {
          source: 'webhook',
          topic: '/in',
          payload: '{"ref":"main"}',
          headers: { 'x-github-event': 'push', 'x-github-delivery': 'd-1' },
          atMs: clock.nowMs(),
          by: 'webhook:github',
          key: expect.stringMatching(/^webhook \/in github [0-9a-f]{64}$/),
        },
        also: { repeats: true, verified: [authOf('github')] },
      },
    ])
  })

  test('answers a repeated delivery with the first answer', async () => {
    const { sendAs } = open([webhookOf('github')])
    const first = await (await sendAs('github', '{}', 'd-1')).text()
    expect(await (await sendAs('github', '{}', 'd-1')).text()).toBe(first)
    expect(await (await sendAs('github', '{}', 'd-2')).text()).not.toBe(first)
  })

  test('refuses a request without a valid signature, and says why only in the log', async () => {
    const { send, sendAs, fired, logs } = open([webhookOf('github')])
    expect((await sendAs('github', '{}', 'd', { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` })).status).toBe(401)
    const { status, headers } = await send('{}', {})
    expect([status, headers.get('content-type')]).toEqual([401, 'application/json'])
    expect(fired).toEqual([])
    expect(logs.map(({ fields }) => fields.reason)).toEqual([
      'x-hub-signature-256 does not match the request',
      'x-hub-signature-256 is missing',
    ])
  })

  test('ignores a bearer token and X-Idempotency-Key', async () => {
    const { sendAs, send, pair } = open([webhookOf('github')])
    const { token } = await pair()
    expect((await send('{}', { authorization: `Bearer ${token}` })).status).toBe(401)
    const first = await (await sendAs('github', '{}', 'a', { 'x-idempotency-key': 'k' })).text()
    expect(await (await sendAs('github', '{}', 'b', { 'x-idempotency-key': 'k' })).text()).not.toBe(first)
  })

  test('locks out an address after ten wrong signatures, but never a right one', async () => {
    const { sendAs, send } = open([webhookOf('github')])
    const wrong = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }
    const from = { peer: '203.0.113.9' }
    for (let count = 0; count < 10; count++) expect((await sendAs('github', '{}', 'd', wrong, from)).status).toBe(401)
    expect((await send('{}', {}, from)).status).toBe(429)
    expect((await sendAs('github', '{}', 'd', {}, from)).status).toBe(200)
  })

  test('limits the requests of an address that it refuses, but never valid ones', async () => {
    const { sendAs, send } = open([webhookOf('github')], { config: { webhook_rate_limit_per_minute: 2 } })
    for (const id of ['a', 'b', 'c', 'd']) expect((await sendAs('github', '{}', id)).status).toBe(200)
    expect([(await send('{}', {})).status, (await send('{}', {})).status, (await send('{}', {})).status]).toEqual([401, 401, 429])
    expect((await sendAs('github', '{}', 'e')).status).toBe(200)
  })

  test('fires the triggers that are loaded when the body is complete', async () => {
    const webhooks = [webhookOf('github')]
    const { sendAs, fired } = open(webhooks, { whenMatched: () => void webhooks.splice(0, 1, webhookOf('stripe')) })
    expect((await sendAs('github', '{}')).status).toBe(401)
    expect((await sendAs('stripe', '{"id":"evt_1"}')).status).toBe(200)
    expect(fired).toHaveLength(1)
  })

  test('asks the sender to repeat the request if its triggers go away or take another kind of proof', async () => {
    for (const after of [[], [{ secrets: [], headers: [], role: 'operator' }]] as const) {
      const webhooks: TriggerWebhook[] = [webhookOf('github')]
      const { sendAs, fired } = open(webhooks, { whenMatched: () => void webhooks.splice(0, 1, ...after) })
      expect((await sendAs('github', '{}')).status).toBe(503)
      expect(fired).toEqual([])
    }
  })

  test('answers 503 while its secret is not set', async () => {
    const { sendAs } = open([webhookOf('github', { secrets: [] })])
    expect((await sendAs('github', '{}')).status).toBe(503)
  })

  test('accepts any of its secrets', async () => {
    const { sendAs } = open([webhookOf('github', { secrets: [new Secret('next'), new Secret(SECRET)] })])
    expect((await sendAs('github', '{}')).status).toBe(200)
  })

  test('refuses an old request of a sender that signs the time', async () => {
    const { sendAs, send, clock } = open([webhookOf('stripe')])
    const { headers } = signProof(SENDER_SCHEMES.stripe, SECRET, { url: '', body: '{}', id: '', atMs: clock.nowMs() - 301_000 })
    expect((await send('{}', headers)).status).toBe(401)
    expect((await sendAs('stripe', '{"id":"evt_1"}')).status).toBe(200)
  })

  test('verifies the public address if the sender signs the address', async () => {
    const { send, clock } = open([webhookOf('twilio')], { config: { public_url: 'https://hooks.example.com:443/sluice/' } })
    const body = 'Body=hello'
    const signedFor = (url: string) => signProof(SENDER_SCHEMES.twilio, SECRET, { url, body, id: 'd', atMs: clock.nowMs() }).headers
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const url = 'https://hooks.example.com:443/sluice/in?a=%20b'
    expect((await send(body, { ...form, ...signedFor(url) }, {}, '?a=%20b')).status).toBe(200)
    expect((await send(body, { ...form, ...signedFor('http://127.0.0.1:42617/in') })).status).toBe(401)
  })

  test('takes bodies up to its own limit', async () => {
    const { sendAs } = open([webhookOf('github', { bodyBytesMax: 100_000 })])
    expect((await sendAs('github', JSON.stringify('x'.repeat(99_998)))).status).toBe(200)
    expect((await sendAs('github', JSON.stringify('x'.repeat(99_999)))).status).toBe(413)
  })

  test('verifies the raw bytes and refuses a body that is not JSON', async () => {
    const { sendAs, fired } = open([webhookOf('github')])
    expect((await sendAs('github', '{"a":1,}')).status).toBe(400)
    await sendAs('github', '{ "a" : "\\u00e9" }')
    expect(fired[0]?.event.payload).toBe('{ "a" : "\\u00e9" }')
  })

  test('returns the challenge by which Slack checks the address, to Slack only', async () => {
    const { sendAs, send, fired } = open([webhookOf('slack')])
    const body = '{"type":"url_verification","challenge":"c-1"}'
    const response = await sendAs('slack', body)
    expect([response.status, await response.text(), response.headers.get('content-type')]).toEqual([
      200,
      'c-1',
      'text/plain; charset=utf-8',
    ])
    expect((await send(body, {})).status).toBe(401)
    expect(fired).toEqual([])
  })

  test.each<[who: string, method: string, query: string, text: string]>([
    ['Trello', 'HEAD', '', ''],
    ['Dropbox', 'GET', '?challenge=a%20b', 'a b'],
    ['Meta', 'GET', '?hub.mode=subscribe&hub.challenge=17&hub.verify_token=x', '17'],
    ['Microsoft Graph', 'POST', '?validationToken=Validation%3A+T', 'Validation: T'],
  ])('answers the request by which %s checks the address (%s %s)', async (_who, method, query, text) => {
    const { request, fired } = open([webhookOf('github')])
    const response = await request(`/in${query}`, { method })
    expect([response.status, await response.text()]).toEqual([200, text])
    if (text !== '') expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(fired).toEqual([])
  })

  test.each<[who: string, body: string, headers: Readonly<Record<string, string>>, answer: string]>([
    ['monday.com', '{"challenge":"c-1"}', {}, '{"challenge":"c-1"}'],
    ['Twitch', '{"challenge":"c-1","subscription":{}}', { 'twitch-eventsub-message-type': 'webhook_callback_verification' }, 'c-1'],
  ])('answers the signed request by which %s checks the address, and only that', async (_who, body, headers, answer) => {
    const { sendAs, send, fired } = open([webhookOf('github')])
    const response = await sendAs('github', body, 'd-1', headers)
    expect([response.status, await response.text()]).toEqual([200, answer])
    expect((await send(body, headers)).status).toBe(401)
    expect(fired).toEqual([])
  })

  test('returns the secret of Asana to Asana only, and starts nothing', async () => {
    const headers = { 'x-hook-secret': 'b537207f20cb' }
    const asana = open([webhookOf('asana')])
    const response = await asana.request('/in', { method: 'POST', headers })
    expect([response.status, response.headers.get('x-hook-secret'), asana.fired]).toEqual([200, 'b537207f20cb', []])
    expect((await asana.request('/in', { method: 'POST', headers: { 'x-hook-secret': 'two words' } })).status).toBe(401)
    expect((await asana.sendAs('asana', '{"events":[]}')).status).toBe(200)
    expect(asana.fired).toHaveLength(1)
    const other = open([webhookOf('github')])
    expect((await other.request('/in', { method: 'POST', headers })).status).toBe(401)
  })

  test.each<[name: HandshakeName, method: string, query: string, headers: Readonly<Record<string, string>>]>([
    ['head', 'HEAD', '', {}],
    ['parameter', 'GET', '?challenge=c', {}],
    ['parameter', 'POST', '?validationToken=c', {}],
    ['secret', 'POST', '', { 'x-hook-secret': 's' }],
  ])('answers %s only where the trigger names it (%s)', async (name, method, query, headers) => {
    const statusWith = async (...handshakes: HandshakeName[]) => {
      const { auth } = webhookOf('github')
      if (!auth) throw new Error('webhookOf gives an authentication')
      return (await open([webhookOf('github', { auth: { ...auth, handshakes } })]).request(`/in${query}`, { method, headers })).status
    }
    expect(await statusWith(name)).toBe(200)
    expect([401, 405]).toContain(await statusWith(...HANDSHAKES.filter((other) => other !== name)))
    expect([401, 405]).toContain(await statusWith())
  })

  test('takes a signed challenge for an event where the trigger does not name `challenge`', async () => {
    const { auth } = webhookOf('github')
    const { sendAs, fired } = open([webhookOf('github', auth && { auth: { ...auth, handshakes: ['head'] } })])
    expect((await sendAs('github', '{"challenge":"c"}')).status).toBe(200)
    expect(fired).toHaveLength(1)
  })

  test('answers the token of Zoom with its HMAC, to Zoom only', async () => {
    const body = '{"event":"endpoint.url_validation","payload":{"plainToken":"p"}}'
    const zoom: WebhookAuth = { name: 'hmac', scheme: bodyHmac('x-zm-signature'), secrets: ['github'], windowSecs: 300 }
    const { send, sendAs, fired } = open([webhookOf('github', { auth: zoom })])
    const signature = hmacSha256(SECRET, body).toString('hex')
    const response = await send(body, { 'x-zm-signature': signature })
    expect(await response.json()).toEqual({ plainToken: 'p', encryptedToken: hmacSha256(SECRET, 'p').toString('hex') })
    expect(fired).toEqual([])
    expect((await sendAs('github', body)).status).toBe(401)
    const other = open([webhookOf('github')])
    expect((await other.sendAs('github', body)).status).toBe(200)
    expect(other.fired).toHaveLength(1)
  })

  test.each([
    ['a challenge beside other members', '{"challenge":"c-1","id":7}'],
    ['a token that is no text', '{"event":"endpoint.url_validation","payload":{"plainToken":7}}'],
    ['a challenge inside a list', '["challenge"]'],
  ])('starts its procedures by an event with %s', async (_what, body) => {
    const { sendAs, fired } = open([webhookOf('github')])
    expect((await sendAs('github', body)).status).toBe(200)
    expect(fired).toHaveLength(1)
  })

  test.each([
    ['GET', ''],
    ['GET', `?challenge=${'x'.repeat(3000)}`],
    ['PUT', '?challenge=c'],
  ])('does not answer %s %s', async (method, query) => {
    const { request } = open([webhookOf('github')])
    expect((await request(`/in${query}`, { method })).status).toBe(405)
  })

  test('counts first contacts in the rate limit of webhooks', async () => {
    const { request } = open([webhookOf('github')], { config: { webhook_rate_limit_per_minute: 2 } })
    const statuses = []
    for (let times = 0; times < 3; times++) statuses.push((await request('/in?challenge=c', { method: 'GET' })).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  test.each<[SenderName, string, Readonly<Record<string, string>>]>([
    ['github', '{"zen":"Keep it simple."}', { 'x-github-event': 'ping' }],
    ['atlassian', '{"test":true}', { 'x-event-key': 'diagnostics:ping' }],
    ['pagerduty', '{"event":{"id":"e1","event_type":"pagey.ping"}}', {}],
    ['stripe', '{"id":"evt_1","object":"v2.core.event","type":"v2.core.event_destination.ping"}', {}],
  ])('says to %s that an event which started nothing was only a test', async (name, body, headers) => {
    const { sendAs } = open([webhookOf(name)], { fire: () => [] })
    const response = await sendAs(name, body, 'd-1', headers)
    expect([response.status, await response.json()]).toEqual([200, { status: 'test' }])
    const other = await sendAs(name, '{"event":{"event_type":"x"}}', 'd-2', { 'x-github-event': 'push', 'x-event-key': 'push' })
    expect(await other.json()).toMatchObject({ status: 'accepted', results: [] })
  })

  test('says what a test event started where a condition names it', async () => {
    const { sendAs } = open([webhookOf('github')])
    const response = await sendAs('github', '{}', 'd-1', { 'x-github-event': 'ping' })
    expect(await response.json()).toMatchObject({ results: [{ status: 'started' }] })
  })

  test('lets the sender repeat an event that no procedure has room for', async () => {
    const full = new AppError('unavailable', 'as many runs wait as may', { retryAfterSecs: 30 })
    const { sendAs } = open([webhookOf('github')], {
      fire: () => {
        throw full
      },
    })
    const response = await sendAs('github', '{}')
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '30'])
  })

  test('keeps the headers that conditions read, and never the secret', async () => {
    const { send, fired } = open([webhookOf('gitlab', { headers: ['x-own', 'x-gitlab-token'] })])
    await send('{}', { 'x-gitlab-token': SECRET, 'x-own': 'yes', 'x-other': 'no', 'x-gitlab-event': 'Push Hook' })
    expect(fired[0]?.event.headers).toEqual({ 'x-gitlab-event': 'Push Hook', 'x-own': 'yes' })
    expect(JSON.stringify(fired)).not.toContain(SECRET)
  })
})

describe('two triggers on one path', () => {
  test('are each fired only by their own authentication', async () => {
    const { sendAs, send, fired, pair } = open([{ secrets: [], headers: [], role: 'operator' }, webhookOf('github'), webhookOf('stripe')])
    const { token } = await pair()
    await sendAs('github', '{}')
    await sendAs('stripe', '{"id":"evt_1"}')
    await send('{}', { authorization: `Bearer ${token}` })
    expect(fired.map(({ also }) => also)).toEqual([
      { repeats: true, verified: [authOf('github')] },
      { repeats: true, verified: [authOf('stripe')] },
      { repeats: true },
    ])
    expect((await send('{}', {})).status).toBe(401)
  })

  test('of different senders do not mistake a delivery for that of the other sender', async () => {
    const ownOf = (header: string, name: string): TriggerWebhook => ({
      auth: { name: 'hmac', scheme: bodyHmac(header, { idHeaders: ['x-id'] }), secrets: [name], windowSecs: 300 },
      secrets: [new Secret(name)],
      role: 'operator',
      headers: [],
    })
    const { send, fired } = open([ownOf('x-a', 'one'), ownOf('x-b', 'two'), ownOf('x-b', 'three')])
    for (const [header, secret] of [
      ['x-a', 'one'],
      ['x-b', 'two'],
      ['x-b', 'three'],
    ] as const) {
      expect((await send('{}', { [header]: hmacSha256(secret, '{}').toString('hex'), 'x-id': '7' })).status).toBe(200)
    }
    expect(new Set(fired.map(({ event }) => event.key)).size).toBe(3)
  })
})

describe('a body', () => {
  const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

  test('that is a form becomes a JSON object', async () => {
    const { sendAs, fired } = open([webhookOf('twilio')])
    expect((await sendAs('twilio', 'Body=caf%C3%A9+au+lait&Media=a&Media=b&__proto__=x&Empty=', 'd-1', FORM)).status).toBe(200)
    expect(fired[0]?.event.payload).toBe('{"Body":"café au lait","Media":["a","b"],"__proto__":"x","Empty":""}')
  })

  test('that is a form with only a payload is the JSON in it', async () => {
    const { sendAs, fired } = open([webhookOf('github')])
    await sendAs('github', `payload=${encodeURIComponent('{"ref":"main"}')}`, 'd-1', FORM)
    expect(fired[0]?.event.payload).toBe('{"ref":"main"}')
  })

  test('of JSON is JSON although a client such as curl announces a form', async () => {
    const { sendAs, fired } = open([webhookOf('github')])
    await sendAs('github', '{"a":"b=c&d"}', 'd-1', FORM)
    expect(fired[0]?.event.payload).toBe('{"a":"b=c&d"}')
  })

  test('of a text is that text in its charset', async () => {
    const { send, fired } = open([webhookOf('gitlab')])
    const text = (bytes: Uint8Array, type: string) => send(bytes, { 'x-gitlab-token': SECRET, 'content-type': type })
    expect((await text(Uint8Array.of(0x63, 0xe9), 'text/plain; charset=ISO-8859-1')).status).toBe(200)
    expect(fired[0]?.event.payload).toBe('cé')
    expect((await text(Uint8Array.of(0x63, 0xe9), 'text/plain')).status).toBe(400)
    expect((await text(Uint8Array.of(0x63), 'text/plain; charset=none')).status).toBe(415)
    expect((await text(Buffer.from('{}'), 'multipart/form-data; boundary=x')).status).toBe(415)
  })

  test('that is compressed is refused with the reason', async () => {
    const { send, fired } = open([webhookOf('gitlab')])
    const compressed = await send('{}', { 'x-gitlab-token': SECRET, 'content-encoding': 'gzip' })
    expect([compressed.status, await compressed.json()]).toMatchObject([415, { error: expect.stringContaining('Content-Encoding') }])
    expect((await send('{}', { 'x-gitlab-token': SECRET, 'content-encoding': 'identity' })).status).toBe(200)
    expect(fired).toHaveLength(1)
  })

  test('of a form has at most 10,000 fields', async () => {
    const { sendAs } = open([webhookOf('github')])
    expect((await sendAs('github', Array(10_000).fill('a').join('&'), 'd-1', FORM)).status).toBe(200)
    expect((await sendAs('github', Array(10_001).fill('a').join('&'), 'd-2', FORM)).status).toBe(400)
  })
})
