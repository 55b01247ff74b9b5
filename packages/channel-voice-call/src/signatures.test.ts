/** The signatures of the providers, against their own libraries. */
import { rawRequest } from '@sluice/sdk/webhook'
import plivo from 'plivo'
import Telnyx from 'telnyx'
import twilio from 'twilio'
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js'
import { describe, expect, test } from 'vitest'
import { plivoSignature } from './plivo.ts'
import { BASE_URL, TELNYX_PUBLIC_KEY, telnyxHeaders } from './testing/index.ts'
import { twilioSignature } from './twilio.ts'
import { createWebhook } from './webhook.ts'

const TOKEN = 'auth-token-01'
const FORMS: readonly Readonly<Record<string, string>>[] = [
  { CallSid: 'CA01', From: '+15550004444', To: '+15550005555', CallStatus: 'ringing' },
  { CallSid: 'CA01', From: '+15550004444', To: '+15550005555', SpeechResult: 'Grüße, 1 + 1 = 2 & mehr 😀', Confidence: '0.9' },
  { b: '', a: 'x', B: '2', a1: ' ' },
  {},
]
const URLS = [`${BASE_URL}/voice/inbound`, `${BASE_URL}/voice/inbound?step=heard&n=abc&times=1`]
const cases = FORMS.flatMap((form) => URLS.map((url) => ({ form, url })))
const at = Date.UTC(2026, 0, 1)

test.each(cases)('the library of Twilio accepts our signature of $form at $url, and we accept its signature', ({ form, url }) => {
  const signature = twilioSignature(TOKEN, url, new URLSearchParams(form))
  expect(twilio.validateRequest(TOKEN, signature, url, form)).toBe(true)
  expect(twilio.validateRequest('another', signature, url, form)).toBe(false)
})

test.each(cases)('the library of Plivo accepts our signature of $form at $url', ({ form, url }) => {
  const signature = plivoSignature(TOKEN, url, new URLSearchParams(form), '12345')
  expect(plivo.validateV3Signature('POST', url, '12345', TOKEN, signature, form)).toBe(true)
  expect(plivo.validateV3Signature('POST', url, '12346', TOKEN, signature, form)).toBe(false)
})

test('the library of Telnyx accepts the signatures of the fake, so it signs as Telnyx does', async () => {
  const body = '{"data":{"event_type":"call.initiated","id":"ev-1"}}'
  const client = new Telnyx({ apiKey: 'KEY', publicKey: TELNYX_PUBLIC_KEY })
  const nowMs = Date.now()
  await expect(client.webhooks.unwrap(body, { headers: telnyxHeaders(body, nowMs) })).resolves.toMatchObject({ data: { id: 'ev-1' } })
  await expect(client.webhooks.unwrap(`${body} `, { headers: telnyxHeaders(body, nowMs) })).rejects.toThrow()
})

describe('a request', () => {
  const webhook = createWebhook({ provider: 'twilio', baseUrl: BASE_URL, authToken: TOKEN, from: '+15550005555' })
  const body = new URLSearchParams(FORMS[0]).toString()
  const signature = twilioSignature(TOKEN, `${BASE_URL}/voice/inbound?step=wait`, new URLSearchParams(FORMS[0]))
  const request = (url: string) =>
    rawRequest({ headers: { 'x-twilio-signature': signature }, url, body: new TextEncoder().encode(body), receivedAtMs: at })

  test('is verified with the public URL, whatever host this daemon sees', async () => {
    expect(await webhook.verify(request('http://127.0.0.1:42617/voice/inbound?step=wait'))).toEqual({ by: 'x-twilio-signature' })
  })

  test.each([
    ['https://gw.example.com:8443', 'https://gw.example.com/voice/inbound'],
    ['https://gw.example.com', 'https://gw.example.com:443/voice/inbound'],
    ['https://gw.example.com/sluice', 'https://gw.example.com/sluice/voice/inbound'],
  ])('behind %s is verified as Twilio signs it: %s', async (baseUrl, signed) => {
    const form = { CallSid: 'CA01', From: '+15550004444', To: '+15550005555' }
    const proxied = createWebhook({ provider: 'twilio', baseUrl, authToken: TOKEN, from: '+15550005555' })
    const headers = { 'x-twilio-signature': getExpectedTwilioSignature(TOKEN, signed, form) }
    const sent = rawRequest({
      headers,
      url: 'http://127.0.0.1:42617/voice/inbound',
      body: new TextEncoder().encode(new URLSearchParams(form).toString()),
      receivedAtMs: at,
    })
    expect(await proxied.verify(sent)).toEqual({ by: 'x-twilio-signature' })
  })

  test('is refused on another path or with another query', async () => {
    for (const url of ['http://127.0.0.1/voice/inbound', 'http://127.0.0.1/voice/inbound?step=heard', 'http://127.0.0.1/other?step=wait']) {
      expect(() => webhook.verify(request(url))).toThrow('Invalid signature')
    }
  })
})
