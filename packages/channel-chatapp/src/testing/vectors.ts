/** chatapp: HMAC-SHA256 over the body, with a fixed secret. */
import { hmacSha256 } from '@sluice/sdk'
import { header, OK, REFUSED, type ReferenceBody, type SentRequest, type Turn, type Vector } from '@sluice/testkit/vector'

export const CHATAPP_SECRET = 'chatapp-app-secret-01'
export const CHATAPP_BODY =
  '{"object":"whatsapp_business_account","entry":[{"id":"100000000000001","changes":[{"field":"messages","value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"15550001111","phone_number_id":"200000000000002"},"contacts":[{"profile":{"name":"Ada"},"wa_id":"15550002222"}],"messages":[{"from":"15550002222","id":"wamid.TEST0001","timestamp":"1767225600","type":"text","text":{"body":"hello"}}]}}]}]}'
/** The escapes are part of the body. */
const ESCAPED_BODY = String.raw`{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"messages":[{"from":"15550002222","id":"wamid.TEST0002","timestamp":"1767225601","type":"text","text":{"body":"caf\u00e9 \ud83d\ude00"}}]}}]}]}`
const SIGNATURE = '39d769b8a3a8b0a899c905810c6fc5a5d38a31a6c87e634d3dba5c29c0558a1b'

const chatapp = (body: string | Uint8Array, signature?: string): SentRequest => ({
  path: '/chatapp',
  headers: header('X-Hub-Signature-256', signature),
  body,
})
const C1 = chatapp(CHATAPP_BODY, `sha256=${SIGNATURE}`)
const C1_TURN: Turn = { sender: '+15550002222', messageId: 'wamid.TEST0001', text: 'hello' }
const handshake = (query: string): SentRequest => ({ path: `/chatapp?${query}`, method: 'GET' })

export const chatappVectors: readonly Vector[] = [
  { id: 'C1', what: 'a signed text', requests: () => [C1], answers: [OK], turns: [C1_TURN] },
  {
    id: 'C2',
    what: 'escapes are signed in the form they are sent',
    requests: () => [chatapp(ESCAPED_BODY, 'sha256=1709a97d155cce6db76151577a52844f0aae5fc2ae9a44a5f4a5af2168cc6bc5')],
    answers: [OK],
    turns: [{ sender: '+15550002222', messageId: 'wamid.TEST0002', text: 'café 😀' }],
  },
  {
    id: 'C3',
    what: 'a signature of the re-serialized JSON',
    requests: () => [chatapp(ESCAPED_BODY, 'sha256=60665e40d698484d3f2abb7ea9f78dfb6e952d6abd9955186b315fdc3e51b7fd')],
    answers: [REFUSED],
  },
  {
    id: 'C4',
    what: 'a signature with another secret',
    requests: () => [chatapp(CHATAPP_BODY, 'sha256=92483a78b3aa7c5e888314e76f41eb31cd45b23720e62eecfb7814d648bed4d2')],
    answers: [REFUSED],
  },
  {
    id: 'C5',
    what: 'a signature that is missing, without prefix, of 63 digits, with a changed last digit, or repeated',
    requests: () => [
      chatapp(CHATAPP_BODY),
      chatapp(CHATAPP_BODY, SIGNATURE),
      chatapp(CHATAPP_BODY, `sha256=${SIGNATURE.slice(0, -1)}`),
      chatapp(CHATAPP_BODY, `sha256=${SIGNATURE.slice(0, -1)}c`),
      { ...C1, headers: [...(C1.headers ?? []), ...(C1.headers ?? [])] },
    ],
    answers: [REFUSED, REFUSED, REFUSED, REFUSED, REFUSED],
  },
  {
    id: 'C6',
    what: 'a signed empty body',
    requests: () => [chatapp('', 'sha256=ccc4f701caa246e5338c0a9e4d9ebfae2b0d2e3040507e3e6c83aa861296a155')],
    answers: [[400, 'Invalid JSON payload']],
  },
  { id: 'C7', what: 'the same message twice in a row', requests: () => [C1, C1], answers: [OK, OK], turns: [C1_TURN] },
  { id: 'C7', what: 'the same message twice at once', requests: () => [C1, C1], atOnce: true, answers: [OK, OK], turns: [C1_TURN] },
  {
    id: 'C8',
    what: 'the GET check: correct, with a wrong token, in another mode, without a challenge',
    requests: () => [
      handshake('hub.mode=subscribe&hub.verify_token=vt-01&hub.challenge=12345'),
      handshake('hub.mode=subscribe&hub.verify_token=vt-02&hub.challenge=12345'),
      handshake('hub.mode=unsubscribe&hub.verify_token=vt-01&hub.challenge=12345'),
      handshake('hub.mode=subscribe&hub.verify_token=vt-01'),
    ],
    answers: [[200, '12345'], 403, 403, 400],
  },
]

/** The exact bytes that the signatures of this file cover. */
export const bodies: readonly ReferenceBody[] = [
  { body: CHATAPP_BODY, bytes: 416, sha256: '6678f1a899c3840a' },
  { body: ESCAPED_BODY, bytes: 240, sha256: '8c952c1403ca9e83' },
]

/** A request with any body and a valid signature. */
export const chatappRequest = (body: Uint8Array): SentRequest => chatapp(body, `sha256=${hmacSha256(CHATAPP_SECRET, body).toString('hex')}`)
