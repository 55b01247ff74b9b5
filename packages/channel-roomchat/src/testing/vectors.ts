/** roomchat: HMAC-SHA256 over a random value and the body, with the secret of the fake. */
import { hmacSha256 } from '@sluice/sdk'
import { header, OK, REFUSED, type ReferenceBody, type SentRequest, type Turn, type Vector } from '@sluice/testkit/vector'
import { ROOMCHAT_SECRET } from './fake.ts'

export const ROOMCHAT_BODY = String.raw`{"type":"Create","actor":{"type":"Person","id":"users/ada","name":"Ada"},"object":{"type":"Note","id":"4711","name":"message","content":"{\"message\":\"hello\",\"parameters\":[]}","mediaType":"text/markdown"},"target":{"type":"Collection","id":"ops4room","name":"Ops"}}`
const SIGNATURE = '2fad718b764a37b8f99f6c3b0397a87b4aff4b718964e159d25803b9fc272fef'
const RANDOM = 'Zm9vYmFyMDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6MDEyMzQ1'

const roomchat = (
  random: string | undefined,
  signature: string,
  spelling = 'X-RoomChat-',
  body: string | Uint8Array = ROOMCHAT_BODY,
): SentRequest => ({
  path: '/roomchat',
  headers: [...header(`${spelling}Random`, random), ...header(`${spelling}Signature`, signature)],
  body,
})
const R1 = roomchat(RANDOM, SIGNATURE)
const R1_TURN: Turn = { sender: 'ada', to: 'ops4room', text: 'hello' }

export const roomchatVectors: readonly Vector[] = [
  { id: 'R1', what: 'a signed message', requests: () => [R1], answers: [OK], turns: [R1_TURN] },
  {
    id: 'R2',
    what: 'the header names of the real server',
    requests: () => [roomchat(RANDOM, SIGNATURE, 'X-Nextcloud-Talk-')],
    answers: [OK],
    turns: [R1_TURN],
  },
  {
    id: 'R3',
    what: 'a signature in upper case',
    requests: () => [roomchat(RANDOM, SIGNATURE.toUpperCase())],
    answers: [OK],
    turns: [R1_TURN],
  },
  {
    id: 'R4',
    what: 'a signature with its parts in the wrong order',
    requests: () => [roomchat(RANDOM, '706156f2571e1a2948abc7357039d29fdee43a9c70c8fb2fa2a0377a8ac6f435')],
    answers: [REFUSED],
  },
  {
    id: 'R5',
    what: 'a random value that is missing or empty',
    requests: () => [roomchat(undefined, SIGNATURE), roomchat('', SIGNATURE)],
    answers: [REFUSED, REFUSED],
  },
  { id: 'R6', what: 'the same request twice in a row', requests: () => [R1, R1], answers: [OK, REFUSED], turns: [R1_TURN] },
]

/** The exact bytes that the signatures of this file cover. */
export const bodies: readonly ReferenceBody[] = [{ body: ROOMCHAT_BODY, bytes: 269, sha256: '8fbd600e06013999' }]

/** A request with any body and a valid signature. */
export const roomchatRequest = (body: Uint8Array): SentRequest =>
  roomchat(RANDOM, hmacSha256(ROOMCHAT_SECRET, RANDOM, body).toString('hex'), 'X-RoomChat-', body)
