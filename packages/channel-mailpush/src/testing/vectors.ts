/** mailpush: the secret `mailpush-secret-01` as a bearer token, or the signed token of the push service. */
import { hmacSha256 } from '@sluice/sdk'
import { header, NOW_SECS, OK, type ReferenceBody, type SentRequest, type Vector } from '@sluice/testkit/vector'
import type { MailpushFake } from './fake.ts'
import { encodeJson } from './fake-push.ts'

/** The URL on the push subscription, and the account that signs the pushes. */
export const PUSH_URL = 'https://gw.example.com/webhook/mailpush'
export const PUSH_ACCOUNT = 'push@project.iam.example.com'

const BODY =
  '{"message":{"data":"eyJlbWFpbEFkZHJlc3MiOiJib3RAZXhhbXBsZS5jb20iLCJoaXN0b3J5SWQiOjk4NzY1NDN9","messageId":"700000000000001","publishTime":"2026-01-01T00:00:00Z"},"subscription":"projects/p/subscriptions/s"}'
const OTHER_BODY =
  '{"message":{"data":"eyJlbWFpbEFkZHJlc3MiOiJiw7Z0K3hAZXgub3JnIiwiaGlzdG9yeUlkIjoiOTg3NjU0NCIsInAiOiJ-fj8_Pj4ifQ==","message_id":"700000000000002"},"subscription":"projects/p/subscriptions/s"}'

const mailpush = (body: string | Uint8Array, authorization?: string): SentRequest => ({
  path: '/webhook/mailpush',
  headers: header('Authorization', authorization),
  body,
})
const BEARER = 'Bearer mailpush-secret-01'
const UNAUTHORIZED = [401, 'Unauthorized'] as const
const BAD_ENVELOPE = [400, 'Invalid Pub/Sub envelope'] as const
const MIB = 1_048_576

export const bodies: readonly ReferenceBody[] = [
  { body: BODY, bytes: 206 },
  { body: OTHER_BODY, bytes: 190 },
]

/** A push contains no message. It makes the channel look into the mailbox, which has no new mail here. */
export const mailpushVectors: readonly Vector<MailpushFake>[] = [
  { id: 'M1', what: 'a push with the secret', requests: () => [mailpush(BODY, BEARER)], answers: [OK] },
  { id: 'M2', what: 'a push with the other spellings of its members', requests: () => [mailpush(OTHER_BODY, BEARER)], answers: [OK] },
  {
    id: 'M3',
    what: 'a secret that is missing, wrong, under another scheme, or empty',
    requests: () => [undefined, 'Bearer mailpush-secret-02', 'Basic mailpush-secret-01', 'Bearer '].map((given) => mailpush(BODY, given)),
    answers: [UNAUTHORIZED, UNAUTHORIZED, UNAUTHORIZED, UNAUTHORIZED],
  },
  {
    id: 'M4',
    what: 'the scheme in lower case',
    requests: () => [mailpush(BODY, 'bearer mailpush-secret-01')],
    answers: [OK],
  },
  {
    id: 'M5',
    what: 'any request while the channel is disabled',
    section: { enabled: false },
    requests: () => [mailpush(BODY, BEARER), mailpush(BODY), mailpush(Buffer.alloc(MIB + 1), BEARER), mailpush('{')],
    answers: [404, 404, 404, 404],
  },
  {
    id: 'M6',
    what: 'a body over 1 MiB is refused before its secret is checked',
    requests: () => [mailpush(Buffer.alloc(MIB + 1), 'Bearer mailpush-secret-02')],
    answers: [413],
  },
  {
    id: 'M7',
    what: 'no envelope, data that is not base64, a body that is not JSON, and data of another kind',
    requests: () =>
      ['{}', '{"message":{"data":"%%%"}}', 'not JSON', '{"message":{"data":"aGVsbG8="}}'].map((body) => mailpush(body, BEARER)),
    answers: [BAD_ENVELOPE, BAD_ENVELOPE, BAD_ENVELOPE, OK],
  },
  {
    id: 'M8',
    what: 'a signed token: valid, for another URL, of another account, expired, unsigned, and signed with the public key',
    requests({ keys }) {
      const good = { aud: PUSH_URL, email: PUSH_ACCOUNT }
      const mint = (claims: object = {}) => keys.mint({ ...good, ...claims }, NOW_SECS * 1000)
      const [, payload = ''] = mint().split('.')
      return [
        mint(),
        mint({ aud: 'https://evil.example/webhook/mailpush' }),
        mint({ email: 'other@project.iam.example.com' }),
        mint({ exp: NOW_SECS - 300 }),
        `${encodeJson({ alg: 'none', typ: 'JWT' })}.${payload}.`,
        forgedToken(payload, keys.publicPem()),
      ].map((token) => mailpush(BODY, `Bearer ${token}`))
    },
    answers: [OK, UNAUTHORIZED, UNAUTHORIZED, UNAUTHORIZED, UNAUTHORIZED, UNAUTHORIZED],
  },
]

/** A forged token. If the token could choose the algorithm, the public key would serve as the secret. */
function forgedToken(payload: string, publicKey: string): string {
  const signed = `${encodeJson({ alg: 'HS256', kid: 'key-1', typ: 'JWT' })}.${payload}`
  return `${signed}.${hmacSha256(publicKey, signed).toString('base64url')}`
}
