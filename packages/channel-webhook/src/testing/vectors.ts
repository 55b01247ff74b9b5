/** webhook: Standard Webhooks with the secret of the fake, or an HMAC-SHA256 over the body in hex. */
import { header, NOW_SECS, OK, REFUSED, type ReferenceBody, type SentRequest, type Turn, type Vector } from '@sluice/testkit/vector'
import { WEBHOOK_PLAIN_SECRET } from './fake.ts'
import { signed } from './signed.ts'

const BODY = '{"id":"m-1","sender":"ada","content":"hello","thread_id":"t-1"}'
/** Made by another implementation: `printf %s "msg_1.1767225600.$body" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$key -binary | base64`. */
const SIGNATURE = 'v1,K7VsVJD4mxkEFf0WtDOujU8wYIbMxTORF+n0/PDFoss='
/** Made by another implementation: `printf %s "$body" | openssl dgst -sha256 -hmac 'a plain webhook secret'`. */
const PLAIN = 'ed3787c669cc00ceeeb11a6e8544199a9255855d6deae90f16e59929b0ab7786'

const standard = (body: string | Uint8Array, headers: Readonly<Record<string, string>>): SentRequest => ({
  path: '/webhook/channel',
  headers: Object.entries(headers),
  body,
})
const delivery = (signature: string, body = BODY): SentRequest =>
  standard(body, { 'webhook-id': 'msg_1', 'webhook-timestamp': String(NOW_SECS), 'webhook-signature': signature })
const plain = (body: string, signature?: string): SentRequest => ({
  path: '/webhook/channel',
  headers: header('X-Webhook-Signature', signature),
  body,
})
const TURN: Turn = { sender: 'ada', messageId: 'm-1', to: 'ada', text: 'hello' }

export const vectors: readonly Vector[] = [
  { id: '1', what: 'a signed message', requests: () => [delivery(SIGNATURE)], answers: [OK], turns: [TURN] },
  {
    id: '2',
    what: 'a signature that is missing, short, of another version, or of another body',
    requests: () => [
      standard(BODY, {}),
      delivery(SIGNATURE.slice(0, -4)),
      delivery(SIGNATURE.replace('v1', 'v2')),
      delivery(SIGNATURE, BODY.replace('hello', 'hallo')),
    ],
    answers: [REFUSED, REFUSED, REFUSED, REFUSED],
  },
  {
    id: '3',
    what: 'the same message twice',
    requests: () => [delivery(SIGNATURE), delivery(`v1,AAAA ${SIGNATURE}`)],
    answers: [OK, OK],
    turns: [TURN],
  },
  { id: '4', what: 'a message that is 301 s old', nowSecs: NOW_SECS + 301, requests: () => [delivery(SIGNATURE)], answers: [REFUSED] },
  {
    id: '5',
    what: 'a plain secret, with and without the prefix, and with another body',
    section: { secret: WEBHOOK_PLAIN_SECRET },
    requests: () => [plain(BODY, PLAIN), plain(BODY, `sha256=${PLAIN}`), plain(`${BODY} `, PLAIN), plain(BODY)],
    answers: [OK, OK, REFUSED, REFUSED],
    turns: [TURN],
  },
]

/** The exact bytes that the signatures cover. */
export const bodies: readonly ReferenceBody[] = [{ body: BODY, bytes: 63, sha256: 'ded949db4dcad4cd' }]

/** A request with any body and a valid signature at the usual time. */
export const signedRequest = (body: string | Uint8Array): SentRequest =>
  standard(body, signed(body, { id: 'msg_1', atMs: NOW_SECS * 1000 }))
