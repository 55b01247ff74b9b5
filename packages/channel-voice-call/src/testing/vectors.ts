/** Reference requests of the three providers; the signatures were made with the OpenSSL command line and its libraries. */
import { NOW_SECS, OK, REFUSED, type ReferenceBody, type SentRequest, type Vector } from '@sluice/testkit/vector'
import type { VoiceFake } from './fake.ts'
import { telnyxHeaders } from './keys.ts'
import { formSectionOf } from './section.ts'

const BODY = '{"data":{"event_type":"call.initiated","id":"ev-1"}}'
const SIGNATURE = 'E5IflcjXiQ4BjlqHoGdSRZiKyXH9MBZ6yIWlHuCN/aeK/SWNENd8V7kruV6zGtpOZC4GBiXW8dxJoNMqnnXLAw=='
const FORM = 'CallSid=CA01&CallStatus=ringing&From=%2B15550004444&To=%2B15550005555'
const PLIVO_FORM = 'CallUUID=u-01&From=15550004444&To=15550005555'
const STATE = Buffer.from('{"remote":"+15550004444","local":"+15550005555","direction":"inbound"}').toString('base64')
const HEARD = `{"data":{"event_type":"call.transcription","id":"ev-2","payload":{"call_control_id":"v3:1","client_state":"${STATE}","transcription_data":{"is_final":true,"transcript":"turn on the light"}}}}`

const telnyx = (body: string, time: string, signature: string): SentRequest => ({
  path: '/voice/inbound',
  headers: [
    ['telnyx-timestamp', time],
    ['telnyx-signature-ed25519', signature],
  ],
  body,
})
const signed = (body: string): SentRequest => ({
  path: '/voice/inbound',
  headers: Object.entries(telnyxHeaders(body, NOW_SECS * 1000)),
  body,
})
const form = (body: string, headers: Readonly<Record<string, string>>): SentRequest => ({
  path: '/voice/inbound',
  headers: [['content-type', 'application/x-www-form-urlencoded'], ...Object.entries(headers)],
  body,
})
const TOKENS = { twilio: 'twilio-token-01', plivo: 'plivo-token-01' } as const
/** The section of a provider that posts forms, with the token of its vector. */
const sectionFor = (provider: 'twilio' | 'plivo') => ({
  ...formSectionOf(provider, { url: 'http://127.0.0.1:9' }),
  auth_token: TOKENS[provider],
})

export const voiceVectors: readonly Vector<VoiceFake>[] = [
  { id: 'X7', what: 'an event of Telnyx', requests: () => [telnyx(BODY, String(NOW_SECS), SIGNATURE)], answers: [OK] },
  {
    id: 'V1',
    what: 'recognised speech, twice',
    requests: () => [signed(HEARD), signed(HEARD)],
    answers: [OK, OK],
    turns: [{ sender: '+15550004444', to: '+15550004444', text: 'turn on the light' }],
  },
  {
    id: 'V2',
    what: 'an event that is 301 s old',
    nowSecs: NOW_SECS + 301,
    requests: () => [telnyx(BODY, String(NOW_SECS), SIGNATURE)],
    answers: [REFUSED],
  },
  {
    id: 'V3',
    what: 'another body, another time, and no signature',
    requests: () => [
      telnyx(BODY.replace('ev-1', 'ev-2'), String(NOW_SECS), SIGNATURE),
      telnyx(BODY, String(NOW_SECS + 1), SIGNATURE),
      telnyx(BODY, String(NOW_SECS), ''),
    ],
    answers: [REFUSED, REFUSED, REFUSED],
  },
  {
    id: 'X6',
    what: 'a call that rings at Twilio',
    section: sectionFor('twilio'),
    requests: () => [form(FORM, { 'X-Twilio-Signature': 'fZY4R+vZ/HoywX2EokWedDyqV/g=' })],
    answers: [[200, '<Gather ']],
  },
  {
    id: 'V4',
    what: 'a Twilio signature of another body',
    section: sectionFor('twilio'),
    requests: () => [form(FORM.replace('CA01', 'CA02'), { 'X-Twilio-Signature': 'fZY4R+vZ/HoywX2EokWedDyqV/g=' })],
    answers: [REFUSED],
  },
  {
    id: 'X8',
    what: 'a call that begins at Plivo',
    section: sectionFor('plivo'),
    requests: () => [
      form(PLIVO_FORM, {
        'X-Plivo-Signature-V3': 'QUOyU8djsFEtHDe+S5NTfB4WXiiUePXTWRU2VbV1hrg=',
        'X-Plivo-Signature-V3-Nonce': '12345678901234567890',
      }),
    ],
    answers: [[200, '<GetInput ']],
  },
  {
    id: 'V5',
    what: 'a Plivo signature with another nonce',
    section: sectionFor('plivo'),
    requests: () => [
      form(PLIVO_FORM, { 'X-Plivo-Signature-V3': 'QUOyU8djsFEtHDe+S5NTfB4WXiiUePXTWRU2VbV1hrg=', 'X-Plivo-Signature-V3-Nonce': '1' }),
    ],
    answers: [REFUSED],
  },
]

/** The exact bytes that the signatures of this file cover. */
export const bodies: readonly ReferenceBody[] = [{ body: BODY, bytes: 52 }]

/** A request with any body and a valid signature at the usual time. */
export const voiceRequest = (body: Uint8Array): SentRequest => ({
  path: '/voice/inbound',
  headers: Object.entries(telnyxHeaders(body, NOW_SECS * 1000)),
  body,
})
