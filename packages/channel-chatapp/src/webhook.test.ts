import { hmacSha256 } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { build, errorOf, requestOf } from './testing/build-channel.ts'

/** 416 bytes, as the platform sends them. */
const B1 =
  '{"object":"whatsapp_business_account","entry":[{"id":"100000000000001","changes":[{"field":"messages","value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"15550001111","phone_number_id":"200000000000002"},"contacts":[{"profile":{"name":"Ada"},"wa_id":"15550002222"}],"messages":[{"from":"15550002222","id":"wamid.TEST0001","timestamp":"1767225600","type":"text","text":{"body":"hello"}}]}}]}]}'
/** 240 bytes; the escapes are part of the body. */
const B2 = String.raw`{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"messages":[{"from":"15550002222","id":"wamid.TEST0002","timestamp":"1767225601","type":"text","text":{"body":"caf\u00e9 \ud83d\ude00"}}]}}]}]}`
const SIGNATURE_1 = 'sha256=39d769b8a3a8b0a899c905810c6fc5a5d38a31a6c87e634d3dba5c29c0558a1b'
const SIGNATURE_2 = 'sha256=1709a97d155cce6db76151577a52844f0aae5fc2ae9a44a5f4a5af2168cc6bc5'

const { webhook } = build({ app_secret: 'chatapp-app-secret-01' })
const verified = { by: 'x-hub-signature-256' }

describe('POST /chatapp', () => {
  test('the test bodies have the length of the signed ones', () => {
    expect([B1.length, B2.length]).toEqual([416, 240])
  })

  test('accepts and parses a signed text', () => {
    const request = requestOf(B1, SIGNATURE_1)
    expect(webhook.verify(request)).toEqual(verified)
    expect(webhook.parse(request)).toMatchObject([{ id: 'wamid.TEST0001', sender: '+15550002222', text: 'hello' }])
  })

  test('verifies escapes as sent and parses their characters', () => {
    const request = requestOf(B2, SIGNATURE_2)
    expect(webhook.verify(request)).toEqual(verified)
    expect(webhook.parse(request)).toMatchObject([{ id: 'wamid.TEST0002', account: '200000000000002', text: 'café 😀' }])
  })

  test('accepts upper-case digits and blanks around the header', () => {
    expect(webhook.verify(requestOf(B1, ` sha256=${SIGNATURE_1.slice(7).toUpperCase()} `))).toEqual(verified)
  })

  test.each([
    ['of the re-serialised body', B2, 'sha256=60665e40d698484d3f2abb7ea9f78dfb6e952d6abd9955186b315fdc3e51b7fd'],
    ['made with another secret', B1, 'sha256=92483a78b3aa7c5e888314e76f41eb31cd45b23720e62eecfb7814d648bed4d2'],
    ['that is missing', B1, undefined],
    ['without its prefix', B1, SIGNATURE_1.slice(7)],
    ['of another algorithm', B1, SIGNATURE_1.replace('sha256', 'sha1')],
    ['of 63 digits', B1, SIGNATURE_1.slice(0, -1)],
    ['of 65 digits', B1, `${SIGNATURE_1}b`],
    ['with another last digit', B1, SIGNATURE_1.replace(/b$/, 'c')],
    ['that is repeated', B1, `${SIGNATURE_1}, ${SIGNATURE_1}`],
  ])('rejects a signature %s', (_what, body, signature) => {
    expect(errorOf(() => webhook.verify(requestOf(body, signature)))).toMatchObject({ code: 'unauthorized', message: 'Invalid signature' })
  })

  test('accepts the signature of an empty body, which is not JSON', () => {
    const request = requestOf('', 'sha256=ccc4f701caa246e5338c0a9e4d9ebfae2b0d2e3040507e3e6c83aa861296a155')
    expect(webhook.verify(request)).toEqual(verified)
    expect(errorOf(() => webhook.parse(request))).toMatchObject({ code: 'invalid_request', message: 'Invalid JSON payload' })
  })

  test.each(['', ' \n'])('accepts unsigned requests with the secret %j, and says so', (secret) => {
    const { webhook } = build(secret === '' ? {} : { app_secret: secret })
    expect(webhook.unsigned).toBe('app_secret')
    expect(webhook.verify(requestOf(B1))).toEqual({ by: 'nothing: app_secret is not set' })
  })

  test('ignores blanks around the secret', () => {
    expect(build({ app_secret: ' chatapp-app-secret-01\n' }).webhook.verify(requestOf(B1, SIGNATURE_1))).toEqual(verified)
  })
})

describe('GET /chatapp', () => {
  const { webhook } = build({ verify_token: 'vt-01' })
  const ask = async (query: string) => {
    const response = webhook.handshake?.(new URL(`http://localhost/chatapp?${query}`))
    return [response?.status, await response?.text()]
  }

  test.each([
    ['hub.mode=subscribe&hub.verify_token=vt-01&hub.challenge=12345', 200, '12345'],
    ['hub.mode=subscribe&hub.verify_token=vt-02&hub.challenge=12345', 403, 'Forbidden'],
    ['hub.mode=unsubscribe&hub.verify_token=vt-01&hub.challenge=12345', 403, 'Forbidden'],
    ['hub.verify_token=vt-01&hub.challenge=12345', 403, 'Forbidden'],
    ['hub.mode=subscribe&hub.verify_token=vt-01', 400, 'Missing hub.challenge'],
  ])('answers %s with %i', async (query, status, text) => {
    expect(await ask(query)).toEqual([status, text])
  })

  test('answers with plain text that browsers do not render', () => {
    const query = 'hub.mode=subscribe&hub.verify_token=vt-01&hub.challenge=<script>'
    const headers = webhook.handshake?.(new URL(`http://localhost/chatapp?${query}`)).headers
    expect(headers?.get('content-type')).toMatch(/^text\/plain/)
    expect(headers?.get('x-content-type-options')).toBe('nosniff')
  })

  test('rejects every check while verify_token is blank', () => {
    const { webhook } = build({ verify_token: ' ' })
    const query = 'hub.mode=subscribe&hub.verify_token=&hub.challenge=1'
    expect(webhook.handshake?.(new URL(`http://localhost/chatapp?${query}`)).status).toBe(403)
  })
})

test('a sample is ASCII and has a valid signature', () => {
  const sample = { sender: 'US.90000000000001', text: 'café 😀', id: 'wamid.S1', atMs: 1_767_225_600_000 }
  const { headers, body } = webhook.sample(sample)
  expect(body).toMatch(/^[ -~]*$/)
  expect(headers['x-hub-signature-256']).toBe(`sha256=${hmacSha256('chatapp-app-secret-01', body).toString('hex')}`)
  expect(webhook.parse(requestOf(body))).toEqual([
    {
      id: 'wamid.S1',
      account: '200000000000002',
      sender: 'US.90000000000001',
      to: { to: 'US.90000000000001', replyTo: 'wamid.S1' },
      addressed: 'direct',
      text: 'café 😀',
      sentAtMs: 1_767_225_600_000,
    },
  ])
  expect(build({}).webhook.sample(sample).headers).toEqual({ 'content-type': 'application/json' })
})
