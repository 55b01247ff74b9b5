/** workchat: bodies that are encrypted and signed with the Encrypt Key of the fake, or plain with the Verification Token. */
import type { SectionValues } from '@sluice/testkit/section-values'
import { NOW_SECS, OK, REFUSED, type ReferenceBody, type SentRequest, type Turn, type Vector } from '@sluice/testkit/vector'
import { WORKCHAT_APP_ID, WORKCHAT_ENCRYPT_KEY, WORKCHAT_VERIFICATION_TOKEN } from './fake.ts'
import { workchatEncrypted, workchatSignature } from './signed.ts'

/**
 * `{"challenge":"ch-1","token":"tok-1","type":"url_verification"}`, encrypted with the key `encrypt-key-01` by another implementation:
 * `openssl enc -aes-256-cbc -K $(printf encrypt-key-01 | sha256sum | cut -d' ' -f1) -iv 000102030405060708090a0b0c0d0e0f`.
 */
export const WORKCHAT_CHALLENGE =
  'AAECAwQFBgcICQoLDA0OD66Z7gTa52wkbwGctrad9h3D1VrfsWuHvJx1EA7XtF/VbUx7zKf1RyyZPTmDSvrdUf2h7cl16ry/5PEg211H2pw='
const CHALLENGE_BODY = JSON.stringify({ encrypt: WORKCHAT_CHALLENGE })
/** `printf %s "1767225600nonce01encrypt-key-01$body" | sha256sum`, which no code of this package computes. */
const CHALLENGE_SIGNATURE = '1e4d09a408470634c4567d7be37351005293326ec4d2588a04d8973042104faf'
const SHORT_BODY = '{"encrypt":"AAAA"}'
const SHORT_SIGNATURE = 'db244a979aeca6cee7e52f0857411eb110d0699ae52adcf23d08e20594be8521'

const EMPTY = [200, '{}'] as const
const TOKEN: SectionValues = { encrypt_key: ' ', verification_token: WORKCHAT_VERIFICATION_TOKEN }
const NONCE: readonly [string, string] = ['X-Lark-Request-Nonce', 'nonce01']
const TIME: readonly [string, string] = ['X-Lark-Request-Timestamp', String(NOW_SECS)]

const post = (body: string | Uint8Array, headers: readonly (readonly [string, string])[] = []): SentRequest => ({
  path: '/workchat',
  headers: [['Content-Type', 'application/json; charset=utf-8'], ...headers],
  body,
})
const signed = (body: string, signature: string): SentRequest => post(body, [TIME, NONCE, ['X-Lark-Signature', signature]])
const hashed = (body: string | Uint8Array, atSecs = NOW_SECS): SentRequest =>
  post(body, Object.entries(workchatSignature(body, { encryptKey: WORKCHAT_ENCRYPT_KEY, atMs: atSecs * 1000 })))

/** A direct message of a person, with a fixed id. */
const eventOf = (text: string): string =>
  JSON.stringify({
    schema: '2.0',
    header: {
      event_id: 'e1',
      event_type: 'im.message.receive_v1',
      create_time: '1767225600000',
      token: WORKCHAT_VERIFICATION_TOKEN,
      app_id: WORKCHAT_APP_ID,
      tenant_key: 'k',
    },
    event: {
      sender: { sender_id: { open_id: 'ou_ada', union_id: 'on_ada', user_id: 'u_ada' }, sender_type: 'user', tenant_key: 'k' },
      message: {
        message_id: 'om_1',
        create_time: '1767225600000',
        chat_id: 'oc_ada',
        chat_type: 'p2p',
        message_type: 'text',
        content: JSON.stringify({ text }),
      },
    },
  })
const encrypted = (json: string): string => workchatEncrypted(json, WORKCHAT_ENCRYPT_KEY)
const TURN: Turn = { sender: 'ou_ada', to: 'oc_ada', text: 'hello', messageId: 'om_1' }

export const workchatVectors: readonly Vector[] = [
  {
    id: 'X5',
    what: 'the check of the URL, encrypted and signed, and without a signature',
    requests: () => [signed(CHALLENGE_BODY, CHALLENGE_SIGNATURE), post(CHALLENGE_BODY)],
    answers: [
      [200, '{"challenge":"ch-1"}'],
      [200, '{"challenge":"ch-1"}'],
    ],
  },
  {
    id: 'X5',
    what: 'the check of the URL with another token than the configured one',
    section: { verification_token: 'another-token' },
    requests: () => [post(CHALLENGE_BODY)],
    answers: [REFUSED],
  },
  {
    id: 'X4',
    what: 'a signature that is right, over a body that nothing can decrypt',
    requests: () => [signed(SHORT_BODY, SHORT_SIGNATURE), signed(SHORT_BODY, SHORT_SIGNATURE.replace('d', 'e'))],
    answers: [400, REFUSED],
  },
  {
    id: '1',
    what: 'an encrypted message, and the same once more',
    requests() {
      const body = encrypted(eventOf('hello'))
      return [hashed(body), hashed(body)]
    },
    answers: [OK, OK],
    turns: [TURN],
  },
  {
    id: '2',
    what: 'an encrypted message without a signature, with one of another body, 301 s old, or from the future',
    requests() {
      const body = encrypted(eventOf('hello'))
      const { headers = [] } = hashed(body)
      return [post(body), { ...hashed(encrypted(eventOf('other'))), headers }, hashed(body, NOW_SECS - 301), hashed(body, NOW_SECS + 301)]
    },
    answers: [REFUSED, REFUSED, REFUSED, REFUSED],
  },
  {
    id: '3',
    what: 'a message with the verification token, with another token, and without one',
    section: TOKEN,
    requests() {
      const body = eventOf('hello')
      return [post(body), post(body.replace(WORKCHAT_VERIFICATION_TOKEN, 'wrong')), post('{}'), post('no json')]
    },
    answers: [OK, REFUSED, REFUSED, REFUSED],
    turns: [TURN],
  },
  {
    id: '4',
    what: 'the plain check of the URL with the verification token, and with another one',
    section: TOKEN,
    requests: () =>
      [WORKCHAT_VERIFICATION_TOKEN, 'wrong'].map((token) => post(JSON.stringify({ challenge: 'ch-2', token, type: 'url_verification' }))),
    answers: [[200, '{"challenge":"ch-2"}'], REFUSED],
  },
  {
    id: '5',
    what: "the bot's own message, and an event that is no message",
    requests() {
      const own = eventOf('echo').replace('"sender_type":"user"', '"sender_type":"app"')
      const read = eventOf('x').replace('im.message.receive_v1', 'im.message.message_read_v1')
      return [own, read].map((body) => hashed(encrypted(body)))
    },
    answers: [OK, OK],
  },
  {
    id: '6',
    what: 'a pressed button, whose answer must not change the card',
    requests() {
      const press = { operator: { open_id: 'ou_ada' }, action: { value: {} }, context: {} }
      const envelope = { schema: '2.0', header: { event_type: 'card.action.trigger', event_id: 'e' }, event: press }
      return [hashed(encrypted(JSON.stringify(envelope)))]
    },
    answers: [EMPTY],
  },
]

/** The exact bytes that the signatures of this file cover. */
export const bodies: readonly ReferenceBody[] = [
  { body: CHALLENGE_BODY, bytes: 122 },
  { body: SHORT_BODY, bytes: 18 },
]

/** A request with any body and a valid signature at the usual time. */
export const signedRequest = (body: Uint8Array): SentRequest => hashed(body)
