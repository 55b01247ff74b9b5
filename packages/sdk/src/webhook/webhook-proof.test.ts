import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bodyHmac, type Proof, SENDER_SCHEMES, type SignedRequest, signProof, verifyProof, type WebhookScheme } from '../index.ts'
import { hmac } from '../values/hmac.ts'

const AT_MS = Date.UTC(2026, 0, 1)
const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const OTHER = 'whsec_HxAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh='
const URL_TEXT = 'https://hooks.example.com/in?a=1'

const SCHEMES: Readonly<Record<string, WebhookScheme>> = {
  ...SENDER_SCHEMES,
  basic: { kind: 'basic', username: 'sluice' },
  query: { kind: 'query', parameter: 'token' },
  sha512: bodyHmac('x-signature', { algorithm: 'sha512', payload: '{id}{url}{body}', idHeaders: ['x-id'] }),
}

/** A request that the scheme accepts. The body has each member that some scheme reads. */
function signed(scheme: WebhookScheme, id = 'delivery-1', secret = SECRET, atMs = AT_MS): SignedRequest {
  const body = Buffer.from(JSON.stringify({ id, event_id: id, event: { id }, webhookTimestamp: atMs }))
  const { headers, query } = signProof(scheme, secret, { url: URL_TEXT, body, id, atMs })
  const url = new URL(URL_TEXT)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return { headers, url: url.href, body, receivedAtMs: AT_MS }
}

const isTimed = (scheme: WebhookScheme) => scheme.kind === 'hmac' && scheme.timestamp !== undefined
const reasonOf = (proof: Proof) => (proof.isValid ? undefined : proof.reason)

describe.each(Object.entries(SCHEMES))('%s', (_, scheme) => {
  test('accepts what it signs, with any of the secrets', () => {
    expect(verifyProof(scheme, [SECRET], signed(scheme)).isValid).toBe(true)
    expect(verifyProof(scheme, [OTHER, SECRET], signed(scheme)).isValid).toBe(true)
    expect(verifyProof(scheme, [OTHER], signed(scheme))).toMatchObject({ isValid: false, isGuess: true })
  })

  test('accepts nothing without a secret', () => {
    const { headers, url, body } = signed(scheme, 'delivery-1', '')
    for (const secrets of [[], [''], ['', '']]) {
      expect(verifyProof(scheme, secrets, { headers, url, body, receivedAtMs: AT_MS })).toMatchObject({ isValid: false, isGuess: false })
    }
  })

  test('tells a request without a proof from a guess', () => {
    expect(verifyProof(scheme, [SECRET], { ...signed(scheme), headers: {}, url: URL_TEXT })).toMatchObject({
      isValid: false,
      isGuess: false,
    })
  })

  test('names a repeated delivery the same and another delivery differently', () => {
    const idOf = (id: string) => {
      const proof = verifyProof(scheme, [SECRET], signed(scheme, id))
      return proof.isValid ? proof.deliveryId : undefined
    }
    expect(idOf('a')).toBe(idOf('a'))
    if (scheme.idHeaders || scheme.idMember || isTimed(scheme)) expect(idOf('a')).not.toBe(idOf('b'))
    else expect(idOf('a')).toBeUndefined()
  })

  test('refuses a time outside of the window, in both directions', () => {
    for (const away of [-301_000, 301_000]) {
      expect(verifyProof(scheme, [SECRET], signed(scheme, 'x', SECRET, AT_MS + away)).isValid).toBe(!isTimed(scheme))
      expect(verifyProof(scheme, [SECRET], signed(scheme, 'x', SECRET, AT_MS + away), 600).isValid).toBe(true)
    }
  })

  test('never throws, and accepts no random header', () => {
    const names = Object.keys(signed(scheme).headers)
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: names.length, maxLength: names.length }), fc.uint8Array(), (values, body) => {
        const headers = Object.fromEntries(names.map((name, index) => [name, values[index]]))
        expect(verifyProof(scheme, [SECRET], { headers, url: 'no url', body, receivedAtMs: AT_MS }).isValid).toBe(false)
      }),
      { numRuns: 50 },
    )
  })
})

test('a body that one byte was changed in is refused by every signature', () => {
  for (const scheme of Object.values(SCHEMES)) {
    if (scheme.kind !== 'hmac') continue
    const request = signed(scheme)
    for (let at = 0; at < request.body.length; at++) {
      const body = Uint8Array.from(request.body)
      body[at] = (body[at] ?? 0) ^ 1
      expect(verifyProof(scheme, [SECRET], { ...request, body }).isValid, `${scheme.header} ${at}`).toBe(false)
    }
  }
})

test('one of several signatures is enough, up to 8 items', () => {
  const { stripe } = SENDER_SCHEMES
  const request = signed(stripe)
  const [time = '', signature = ''] = String(request.headers['stripe-signature']).split(',')
  const withItems = (...items: string[]) => verifyProof(stripe, [SECRET], { ...request, headers: { 'stripe-signature': items.join(',') } })
  expect(withItems(time, `v1=${'0'.repeat(64)}`, signature, `v0=${'0'.repeat(64)}`).isValid).toBe(true)
  expect(withItems(time, ...Array(7).fill('v1=00'), signature).isValid).toBe(false)
  expect(reasonOf(withItems(time, time, signature))).toBe('the timestamp is not within 300 s')
  expect(withItems(time, signature.replace('v1', 'v0')).isValid).toBe(false)
  expect(withItems(time, signature, '').isValid).toBe(false)
  expect(withItems(time, signature, 'other text').isValid).toBe(false)
})

test('a signature has one accepted base64 form, and hex in either case', () => {
  const hex = signed(SENDER_SCHEMES.github)
  const upper = String(hex.headers['x-hub-signature-256']).slice('sha256='.length).toUpperCase()
  expect(verifyProof(SENDER_SCHEMES.github, [SECRET], { ...hex, headers: { 'x-hub-signature-256': `sha256=${upper}` } }).isValid).toBe(true)
  const { shopify } = SENDER_SCHEMES
  const base64 = signed(shopify)
  const text = String(base64.headers['x-shopify-hmac-sha256'])
  const urlForm = text.replaceAll('+', '-').replaceAll('/', '_').replace('=', '')
  for (const form of [text.replace('=', ''), `${text}=`, urlForm, ` ${text}x`]) {
    expect(verifyProof(shopify, [SECRET], { ...base64, headers: { 'x-shopify-hmac-sha256': form } }).isValid, form).toBe(false)
  }
  const either = (form: string) =>
    verifyProof({ ...shopify, takesUrlForm: true }, [SECRET], { ...base64, headers: { 'x-shopify-hmac-sha256': form } }).isValid
  expect([text, urlForm, `${text}=`, ` ${text}x`, `${urlForm}x`].map(either)).toEqual([true, true, false, false, false])
})

test('a parameter that is given twice is not accepted', () => {
  const { query } = SCHEMES
  const request = signed(query as WebhookScheme)
  expect(verifyProof(query as WebhookScheme, [SECRET], { ...request, url: `${request.url}&token=x` }).isValid).toBe(false)
})

// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
test('the example of the documentation of GitHub is accepted', () => {
  const headers = { 'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' }
  const request = { headers, url: URL_TEXT, body: Buffer.from('Hello, World!'), receivedAtMs: AT_MS }
  expect(verifyProof(SENDER_SCHEMES.github, ["It's a Secret to Everybody"], request)).toEqual({ isValid: true })
})

// https://docs.slack.dev/authentication/verifying-requests-from-slack
test('the example of the documentation of Slack is accepted', () => {
  const body =
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
  const headers = {
    'x-slack-request-timestamp': '1531420618',
    'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  }
  const request = { headers, url: URL_TEXT, body: Buffer.from(body), receivedAtMs: 1_531_420_618_000 }
  expect(verifyProof(SENDER_SCHEMES.slack, ['8f742231b10e8888abcd99yyyzzz85a5'], request).isValid).toBe(true)
})

// https://www.twilio.com/docs/usage/security#validating-requests
test('the example of the documentation of Twilio is accepted', () => {
  const form = { CallSid: 'CA1234567890ABCDE', Caller: '+14158675309', Digits: '1234', From: '+14158675309', To: '+18005551212' }
  const request = {
    headers: { 'x-twilio-signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=' },
    url: 'https://mycompany.com/myapp.php?foo=1&bar=2',
    body: Buffer.from(new URLSearchParams(form).toString()),
    receivedAtMs: AT_MS,
  }
  expect(verifyProof(SENDER_SCHEMES.twilio, ['12345'], request).isValid).toBe(true)
})

// https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/javascript/src/index.test.ts
test('the example of the library of Standard Webhooks is accepted', () => {
  const headers = {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  }
  const request = { headers, url: URL_TEXT, body: Buffer.from('{"test": 2432232314}'), receivedAtMs: 1_614_265_330_000 }
  const secret = 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  for (const form of [secret, `whsec_${secret}`]) {
    expect(verifyProof(SENDER_SCHEMES['standard-webhooks'], [form], request)).toEqual({
      isValid: true,
      deliveryId: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    })
  }
})

test('accepts a token that is not ASCII, whose bytes HTTP reads as characters', () => {
  const { headers } = signProof(SENDER_SCHEMES.gitlab, 'pässword', { url: '', body: '{}', id: 'd', atMs: 0 })
  expect(headers['x-gitlab-token']).toBe('p\u00c3\u00a4ssword')
  const request = { headers, url: '', body: Buffer.from('{}'), receivedAtMs: 0 }
  expect(verifyProof(SENDER_SCHEMES.gitlab, ['pässword'], request).isValid).toBe(true)
  expect(verifyProof(SENDER_SCHEMES.gitlab, ['password'], request).isValid).toBe(false)
})

test.each<[time: string, isValid: boolean]>([
  ['2026-01-01T00:00:00Z', true],
  ['2026-01-01T00:04:59.123456789Z', true],
  ['2026-01-01T02:00:00+02:00', true],
  ['2026-01-01T00:06:00Z', false],
  ['2026-01-01T00:00:00', false],
  ['2026-13-01T00:00:00Z', false],
  ['Thu, 01 Jan 2026 00:00:00 GMT', false],
])('a signed time of ISO 8601 is read with its zone: %s', (time, isValid) => {
  const scheme = bodyHmac('x-sig', { payload: '{timestamp}{body}', timestamp: { header: 'x-time' } })
  const body = Buffer.from('{}')
  const headers = { 'x-time': time, 'x-sig': hmac('sha256', SECRET, time, '{}').toString('hex') }
  const request = { headers, url: '', body, receivedAtMs: Date.UTC(2026, 0, 1) }
  expect(verifyProof(scheme, [SECRET], request).isValid).toBe(isValid)
})

test('a signature in base64url has one accepted form, also among the items of a header', () => {
  const scheme = bodyHmac('x-sig', { encoding: 'base64url', prefix: 'v1=', separator: ',' })
  const bodies = Array.from({ length: 200 }, (_, at) => `{"a":${at}}`)
  const mac = (body: string) => hmac('sha256', SECRET, body).toString('base64url')
  const body = bodies.find((one) => /-.*_|_.*-/.test(mac(one))) ?? ''
  const verify = (signature: string) =>
    verifyProof(scheme, [SECRET], { headers: { 'x-sig': `t=1,v1=${signature}` }, url: '', body: Buffer.from(body), receivedAtMs: 0 })
      .isValid
  expect(verify(mac(body))).toBe(true)
  for (const other of [`${mac(body)}=`, mac(body).replaceAll('-', '+').replaceAll('_', '/'), mac(`${body} `)])
    expect(verify(other)).toBe(false)
})

test('GitLab deliveries that one event leads to have no common id', () => {
  const headers = { 'x-gitlab-token': SECRET, 'x-gitlab-event-uuid': 'chain-1' }
  const request = { url: '', body: Buffer.from('{}'), receivedAtMs: 0 }
  expect(verifyProof(SENDER_SCHEMES.gitlab, [SECRET], { ...request, headers })).toEqual({ isValid: true })
  const named = { ...headers, 'idempotency-key': 'd-1' }
  expect(verifyProof(SENDER_SCHEMES.gitlab, [SECRET], { ...request, headers: named })).toEqual({ isValid: true, deliveryId: 'd-1' })
})
