/** line: HMAC-SHA256 of the body in base64. The signatures were made with `openssl dgst -sha256 -hmac line-secret-01 -binary | base64`. */
import { hmacSha256 } from '@sluice/sdk'
import { header, OK, REFUSED, type ReferenceBody, type SentRequest, type Turn, type Vector } from '@sluice/testkit/vector'
import { LINE_USER } from './fake.ts'
import { LINE_SECRET } from './section.ts'

const BODY =
  '{"destination":"Ubbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","events":[{"type":"message","mode":"active","timestamp":1767225600000,"webhookEventId":"01KDVH0000000000000000EV01","deliveryContext":{"isRedelivery":false},"replyToken":"rt","source":{"type":"user","userId":"Uaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},"message":{"id":"444573844083572737","type":"text","quoteToken":"q","text":"hi"}}]}'
/** The body that LINE sends again when the first delivery failed. */
const REDELIVERED = BODY.replace('"isRedelivery":false', '"isRedelivery":true')
const CHECK = '{"destination":"Ubot","events":[]}'

const SIGNATURE = 'bH2qMS5+THvllNPXizibJlimucO/8Y+HW9VjXTg1EDw='
const REDELIVERED_SIGNATURE = 'NKon6yT76pt/0oL44Lj4Ho+Ha7+0jlXnoFaT3UDyVqA='
const OTHER_SECRET_SIGNATURE = 'jPN6Uf6uE9JnF4fcxo+XVrIKXcbKsAVTIUbYT1yO9OQ='
const CHECK_SIGNATURE = '4jDFSubpHmMvuDkIBEepyWcdRYNQHnn3MwmRzxQHa4s='
const EMPTY_SIGNATURE = 'lo9uaNyjCe4PzfNiRhDpXzuJxC1dMNbpp5P9G8kfaMg='

const TURN: Turn = { sender: LINE_USER, messageId: '444573844083572737', to: LINE_USER, text: 'hi' }

const line = (body: string | Uint8Array, signature: string | undefined): SentRequest => ({
  path: '/line',
  headers: header('X-Line-Signature', signature),
  body,
})

/** A request with any body and a valid signature. */
export const lineRequest = (body: Uint8Array): SentRequest => line(body, hmacSha256(LINE_SECRET, body).toString('base64'))

export const lineVectors: readonly Vector[] = [
  { id: 'X2', what: 'the check of the URL, which has no events', requests: () => [line(CHECK, CHECK_SIGNATURE)], answers: [OK] },
  { id: 'L1', what: 'a signed text', requests: () => [line(BODY, SIGNATURE)], answers: [OK], turns: [TURN] },
  {
    id: 'L2',
    what: 'a message that is delivered again',
    requests: () => [line(BODY, SIGNATURE), line(REDELIVERED, REDELIVERED_SIGNATURE)],
    answers: [OK, OK],
    turns: [TURN],
  },
  {
    id: 'L3',
    what: 'the same message twice at once',
    requests: () => [line(BODY, SIGNATURE), line(BODY, SIGNATURE)],
    atOnce: true,
    answers: [OK, OK],
    turns: [TURN],
  },
  {
    id: 'L4',
    what: 'a signature that is missing, empty, of another secret or of another body, in hex, or without its first character',
    requests: () => [
      line(BODY, undefined),
      line(BODY, ''),
      line(BODY, OTHER_SECRET_SIGNATURE),
      line(BODY, REDELIVERED_SIGNATURE),
      line(BODY, Buffer.from(SIGNATURE, 'base64').toString('hex')),
      line(BODY, SIGNATURE.slice(1)),
    ],
    answers: [REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED],
  },
  {
    id: 'L5',
    what: 'a body that was changed after signing',
    requests: () => [line(BODY.replace('"hi"', '"ho"'), SIGNATURE)],
    answers: [REFUSED],
  },
  {
    id: 'L6',
    what: 'an empty body with a valid signature',
    requests: () => [line('', EMPTY_SIGNATURE)],
    answers: [[400, 'Invalid JSON payload']],
  },
]

export const bodies: readonly ReferenceBody[] = [{ body: CHECK, bytes: 34 }]
