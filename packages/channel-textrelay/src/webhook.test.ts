import type { Raw } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { verify as verifyRaw } from './webhook.ts'

const NOW = 1_767_225_600
const SECRET = 'textrelay-signing-secret-01'
const STANDARD_SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const BODY =
  '{"api_version":"v3","webhook_version":"2026-02-03","event_type":"message.received","event_id":"9dd2c0de-0000-4000-8000-000000000001","created_at":"2026-01-01T00:00:00Z","data":{"id":"msg-1","direction":"inbound","sender_handle":{"handle":"+15550003333","is_me":false},"chat":{"id":"chat-1"},"parts":[{"type":"text","value":"hi"}]}}'
const SIGNATURE = 'd0d930080b76131680dbcc1a1b9af1081c06b456c9e2c9cf60af923f2d39890f'
const STANDARD_SIGNATURE = '/xnR059MENzTFqgJiT70lUXY+Bf4AdoFia4dOniI4VY='

const legacy = { 'x-webhook-timestamp': String(NOW), 'x-webhook-signature': SIGNATURE }
const standard = { 'webhook-id': 'evt_0001', 'webhook-timestamp': String(NOW), 'webhook-signature': `v1,${STANDARD_SIGNATURE}` }

const verifySignature = (raw: Raw, secret: string) => verifyRaw(raw, { secret })
const verifyTimes = (raw: Raw) => verifyRaw(raw, { secret: '' })

const raw = (headers: Raw['headers'], { nowSecs = NOW, body = BODY } = {}): Raw => ({
  headers,
  url: new URL('http://localhost/textrelay'),
  body: new TextEncoder().encode(body),
  receivedAtMs: nowSecs * 1000,
})
const REFUSED = expect.objectContaining({ code: 'unauthorized', message: 'Invalid signature', cause: expect.stringMatching(/\S/) })

test('the test body has the length of the signed one', () => {
  expect(Buffer.byteLength(BODY)).toBe(331)
})

describe("the platform's own headers", () => {
  test.each([
    ['in lower case', SIGNATURE],
    ['in upper case', SIGNATURE.toUpperCase()],
    ['after sha256=', `sha256=${SIGNATURE}`],
    ['with space around it', `  ${SIGNATURE} `],
  ])('accepts a valid signature %s', (_how, signature) => {
    expect(verifySignature(raw({ ...legacy, 'x-webhook-signature': signature }), SECRET)).toEqual({ by: 'x-webhook-signature' })
  })

  test.each([
    ['is over timestamp and body without the dot', '78b27fa3f0e82c68d91bb36d2e16f32a8ae7a3a70e5f97336e8c39226c48fdf5'],
    ['is repeated', `${SIGNATURE}, ${SIGNATURE}`],
    ['is a digit short', SIGNATURE.slice(1)],
    ['has sha256= twice', `sha256=sha256=${SIGNATURE}`],
    ['has white space after sha256=', `sha256=\t${SIGNATURE}`],
    ['is in base64', Buffer.from(SIGNATURE, 'hex').toString('base64')],
  ])('rejects a signature that %s', (_how, signature) => {
    expect(() => verifySignature(raw({ ...legacy, 'x-webhook-signature': signature }), SECRET)).toThrow(REFUSED)
  })

  test('verifies our own messages like any other', () => {
    const body =
      '{"event_type":"message.received","data":{"chat_id":"chat-2","from":"+15550003333","is_from_me":true,"message":{"id":"msg-2","parts":[{"type":"text","value":"echo"}]}}}'
    const signature = '3b23e03546e4d6490733def4166ba7295c21fb641bef7d013a8077b31f9deed3'
    expect(verifySignature(raw({ ...legacy, 'x-webhook-signature': signature }, { body }), SECRET).by).toBe('x-webhook-signature')
  })

  test('rejects a changed body', () => {
    expect(() => verifySignature(raw(legacy, { body: BODY.replace('"hi"', '"ho"') }), SECRET)).toThrow(REFUSED)
  })

  test('rejects another secret', () => {
    expect(() => verifySignature(raw(legacy), 'textrelay-signing-secret-02')).toThrow(REFUSED)
  })
})

describe('the timestamp window of 300 s', () => {
  test.each([
    [NOW + 300, true],
    [NOW - 300, true],
    [NOW + 301, false],
    [NOW - 301, false],
  ])('at %d accepts the request: %s', (nowSecs, isAccepted) => {
    for (const [headers, secret] of [
      [legacy, SECRET],
      [standard, STANDARD_SECRET],
    ] as const) {
      const verify = () => verifySignature(raw(headers, { nowSecs }), secret)
      if (isAccepted) expect(verify().by).toContain('webhook-signature')
      else expect(verify).toThrow(REFUSED)
    }
  })

  test.each([`${NOW}.0`, ' ', 'abc', undefined, `-${NOW}`, `${NOW}e0`, `0x${NOW.toString(16)}`, `${NOW}, ${NOW}`])(
    'rejects the timestamp %j',
    (time) => {
      expect(() => verifySignature(raw({ ...legacy, 'x-webhook-timestamp': time }), SECRET)).toThrow(REFUSED)
      expect(() => verifySignature(raw({ ...standard, 'webhook-timestamp': time }), STANDARD_SECRET)).toThrow(REFUSED)
    },
  )
})

describe('without a secret', () => {
  test.each(['x-webhook-timestamp', 'webhook-timestamp'])('accepts a request with %s within 300 s and rejects it beyond', (name) => {
    for (const secs of [NOW, NOW - 300, NOW + 300]) expect(verifyTimes(raw({ [name]: String(secs) })).by).toMatch(/^nothing/)
    for (const time of [String(NOW - 301), String(NOW + 301), '', 'soon']) expect(() => verifyTimes(raw({ [name]: time }))).toThrow(REFUSED)
  })

  test('accepts a request without a timestamp', () => {
    expect(verifyTimes(raw({})).by).toMatch(/^nothing/)
  })
})

describe('Standard Webhooks headers', () => {
  const withSignature = (signature: string) => verifySignature(raw({ ...standard, 'webhook-signature': signature }), STANDARD_SECRET)
  const right = `v1,${STANDARD_SIGNATURE}`

  test('accepts a valid signature, alone or among others during a rotation', () => {
    for (const signature of [right, `v1,AAAA ${right}`, `${right} v1a,AAAA`])
      expect(withSignature(signature)).toEqual({ by: 'webhook-signature' })
  })

  test.each([
    ['a wrong signature', 'v1,AAAA'],
    ['another version', `v2,${STANDARD_SIGNATURE}`],
    ['no version', STANDARD_SIGNATURE],
    ['a repeated header', `${right}, ${right}`],
    ['a signature followed by other text', `${right} nonsense`],
    ['more than eight signatures', Array(9).fill(right).join(' ')],
  ])('rejects %s', (_what, signature) => {
    expect(() => withSignature(signature)).toThrow(REFUSED)
  })

  test('covers the id with the signature', () => {
    expect(() => verifySignature(raw({ ...standard, 'webhook-id': 'evt_0002' }), STANDARD_SECRET)).toThrow(REFUSED)
  })

  test('needs a secret of the form whsec_<base64>', () => {
    for (const secret of [STANDARD_SECRET.slice('whsec_'.length), 'whsec_', 'whsec_!', 'whsec_AAECAw== ']) {
      expect(() => verifySignature(raw(standard), secret)).toThrow(REFUSED)
    }
  })
})

test('accepts one valid header set when the other is wrong', () => {
  const own = { ...legacy, 'webhook-id': 'evt_1', 'webhook-timestamp': '0', 'webhook-signature': 'v1,AAAA' }
  expect(verifySignature(raw(own), SECRET)).toEqual({ by: 'x-webhook-signature' })
  expect(verifySignature(raw({ ...legacy, ...standard }), STANDARD_SECRET)).toEqual({ by: 'webhook-signature' })
})
