/** textrelay: HMAC-SHA256 over time and body with the secret of this file, or Standard Webhooks. */
import { hmacSha256 } from '@sluice/sdk'
import type { SectionValues } from '@sluice/testkit/section-values'
import { header, NOW_SECS, OK, REFUSED, type ReferenceBody, type SentRequest, type Turn, type Vector } from '@sluice/testkit/vector'

/** The signing secret of the vectors. */
export const TEXTRELAY_SECRET = 'textrelay-signing-secret-01'
export const TEXTRELAY_BODY =
  '{"api_version":"v3","webhook_version":"2026-02-03","event_type":"message.received","event_id":"9dd2c0de-0000-4000-8000-000000000001","created_at":"2026-01-01T00:00:00Z","data":{"id":"msg-1","direction":"inbound","sender_handle":{"handle":"+15550003333","is_me":false},"chat":{"id":"chat-1"},"parts":[{"type":"text","value":"hi"}]}}'
const OWN_BODY =
  '{"event_type":"message.received","data":{"chat_id":"chat-2","from":"+15550003333","is_from_me":true,"message":{"id":"msg-2","parts":[{"type":"text","value":"echo"}]}}}'
const SIGNATURE = 'd0d930080b76131680dbcc1a1b9af1081c06b456c9e2c9cf60af923f2d39890f'
const STANDARD_SIGNATURE = 'v1,/xnR059MENzTFqgJiT70lUXY+Bf4AdoFia4dOniI4VY='

const textrelay = (body: string | Uint8Array, time: string | undefined, signature: string): SentRequest => ({
  path: '/textrelay',
  headers: [...header('X-Webhook-Timestamp', time), ...header('X-Webhook-Signature', signature)],
  body,
})
const T1 = textrelay(TEXTRELAY_BODY, String(NOW_SECS), SIGNATURE)
const T1_TURN: Turn = { sender: '+15550003333', to: 'chat-1', text: 'hi' }
const standard = (signature: string): SentRequest => ({
  path: '/textrelay',
  headers: [
    ['webhook-id', 'evt_0001'],
    ['webhook-timestamp', String(NOW_SECS)],
    ['webhook-signature', signature],
  ],
  body: TEXTRELAY_BODY,
})
const STANDARD: SectionValues = { signing_secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=' }

export const textrelayVectors: readonly Vector[] = [
  { id: 'T1', what: 'a signed text', requests: () => [T1], answers: [OK], turns: [T1_TURN] },
  {
    id: 'T2',
    what: 'the same message with the prefix, and in upper case',
    requests: () => [
      textrelay(TEXTRELAY_BODY, String(NOW_SECS), `sha256=${SIGNATURE}`),
      textrelay(TEXTRELAY_BODY, String(NOW_SECS), SIGNATURE.toUpperCase()),
    ],
    answers: [OK, OK],
    turns: [T1_TURN],
  },
  { id: 'T3', what: 'a request that is 300 s old', nowSecs: NOW_SECS + 300, requests: () => [T1], answers: [OK], turns: [T1_TURN] },
  { id: 'T4', what: 'a request that is 301 s old', nowSecs: NOW_SECS + 301, requests: () => [T1], answers: [REFUSED] },
  { id: 'T5', what: 'a request from 301 s in the future', nowSecs: NOW_SECS - 301, requests: () => [T1], answers: [REFUSED] },
  {
    id: 'T6',
    what: 'a signature without the dot',
    requests: () => [textrelay(TEXTRELAY_BODY, String(NOW_SECS), '78b27fa3f0e82c68d91bb36d2e16f32a8ae7a3a70e5f97336e8c39226c48fdf5')],
    answers: [REFUSED],
  },
  {
    id: 'T7',
    what: 'a time with a fraction, blank, of letters, or missing',
    requests: () => [`${NOW_SECS}.0`, ' ', 'abc', undefined].map((time) => textrelay(TEXTRELAY_BODY, time, SIGNATURE)),
    answers: [REFUSED, REFUSED, REFUSED, REFUSED],
  },
  {
    id: 'T8',
    what: 'a Standard Webhooks signature',
    section: STANDARD,
    requests: () => [standard(STANDARD_SIGNATURE)],
    answers: [OK],
    turns: [T1_TURN],
  },
  {
    id: 'T9',
    what: 'several signatures with one valid',
    section: STANDARD,
    requests: () => [standard(`v1,AAAA ${STANDARD_SIGNATURE}`)],
    answers: [OK],
    turns: [T1_TURN],
  },
  {
    id: 'T9',
    what: 'a wrong signature, and a signature of another version',
    section: STANDARD,
    requests: () => [standard('v1,AAAA'), standard(STANDARD_SIGNATURE.replace('v1', 'v2'))],
    answers: [REFUSED, REFUSED],
  },
  {
    id: 'T10',
    what: "the bot's own message",
    requests: () => [textrelay(OWN_BODY, String(NOW_SECS), '3b23e03546e4d6490733def4166ba7295c21fb641bef7d013a8077b31f9deed3')],
    answers: [OK],
  },
  {
    id: 'T11',
    what: 'another text with the same signature',
    requests: () => [textrelay(TEXTRELAY_BODY.replace('"hi"', '"ho"'), String(NOW_SECS), SIGNATURE)],
    answers: [REFUSED],
  },
]

/** The exact bytes that the signatures of this file cover. */
export const bodies: readonly ReferenceBody[] = [
  { body: TEXTRELAY_BODY, bytes: 331, sha256: '0fa2e3fe872a63ff' },
  { body: OWN_BODY, bytes: 167, sha256: '31fb7739218d950d' },
]

/** A request with any body and a valid signature at the usual time. */
export const textrelayRequest = (body: Uint8Array): SentRequest =>
  textrelay(body, String(NOW_SECS), hmacSha256(TEXTRELAY_SECRET, String(NOW_SECS), '.', body).toString('hex'))
