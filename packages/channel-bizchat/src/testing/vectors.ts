/** bizchat: a fixed secret as `?token=` or as a bearer token; the platform signs nothing. */
import { OK, REFUSED, type SentRequest, type Turn, type Vector } from '@sluice/testkit/vector'
import { BIZCHAT_SECRET } from './section.ts'

const BODY =
  '{"id":"event-1","whatsappMessageId":"wamid.TEST0001","conversationId":"c1","text":"hello","type":"text","data":null,"timestamp":"1767225600","owner":false,"eventType":"message","statusString":"SENT","waId":"15550002222","senderName":"Ada"}'
const OWN_BODY = BODY.replace('"owner":false', '"owner":true').replace('"eventType":"message"', '"eventType":"sessionMessageSent"')

/** A request with any body and the secret in its URL. */
export const bizchatRequest = (body: string | Uint8Array, query = `?token=${BIZCHAT_SECRET}`): SentRequest => ({
  path: `/bizchat${query}`,
  body,
})

const bearer = (authorization: string): SentRequest => ({ ...bizchatRequest(BODY, ''), headers: [['Authorization', authorization]] })
const handshake = (query: string): SentRequest => ({ path: `/bizchat${query}`, method: 'GET' })
const TURN: Turn = { sender: '+15550002222', messageId: 'wamid.TEST0001', to: '15550002222', text: 'hello' }

export const bizchatVectors: readonly Vector[] = [
  { id: 'B1', what: 'a message with the secret in its URL', requests: () => [bizchatRequest(BODY)], answers: [OK], turns: [TURN] },
  {
    id: 'B2',
    what: 'a message with the secret as a bearer token',
    requests: () => [bearer(`Bearer ${BIZCHAT_SECRET}`)],
    answers: [OK],
    turns: [TURN],
  },
  {
    id: 'B3',
    what: 'a secret that is missing, wrong, repeated, under another scheme, or empty',
    requests: () => [
      bizchatRequest(BODY, ''),
      bizchatRequest(BODY, '?token=bizchat-webhook-secret-02'),
      bizchatRequest(BODY, `?token=${BIZCHAT_SECRET}&token=${BIZCHAT_SECRET}`),
      bearer(`Basic ${BIZCHAT_SECRET}`),
      bearer('Bearer '),
    ],
    answers: [REFUSED, REFUSED, REFUSED, REFUSED, REFUSED],
  },
  {
    id: 'B4',
    what: 'the same message twice',
    requests: () => [bizchatRequest(BODY), bizchatRequest(BODY)],
    answers: [OK, OK],
    turns: [TURN],
  },
  { id: 'B5', what: 'a message of the account itself', requests: () => [bizchatRequest(OWN_BODY)], answers: [OK] },
  {
    id: 'B6',
    what: 'the GET check: with and without a challenge',
    requests: () => [handshake('?hub.challenge=12345'), handshake('')],
    answers: [[200, '12345'], 400],
  },
]
