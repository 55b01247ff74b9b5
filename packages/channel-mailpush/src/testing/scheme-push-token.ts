/** mailpush: the signed token of the push service, RS256 in a bearer header, verified with the keys of a server. */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import type { Random } from '@sluice/testkit/random'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import type { WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { validBodies } from '@sluice/testkit/webhook-fuzz/valid-bodies'
import feature from '../index.ts'
import { createPushKeys, encodeJson, type PushClaims } from './fake-push.ts'

const AUDIENCE = 'https://gw.example.com/webhook/mailpush'
const ACCOUNT = 'push@project.iam.example.com'
const GOOD: PushClaims = { aud: AUDIENCE, email: ACCOUNT }
const HOUR_MS = 3_600_000
/** The accepted clock difference. */
const SKEW_MS = 300_000

/** Claims of tokens that the service signed for other receivers or for another time. */
const WRONG: readonly Partial<Record<string, unknown>>[] = [
  { aud: 'https://evil.example/webhook/mailpush' },
  { aud: `${AUDIENCE}/` },
  { aud: AUDIENCE.toUpperCase() },
  { aud: '' },
  { aud: [] },
  { aud: null },
  { email: 'other@project.iam.example.com' },
  { email: ACCOUNT.toUpperCase() },
  { email: [ACCOUNT] },
  { email: undefined },
  { email_verified: false },
  { email_verified: 'true' },
  { email_verified: 1 },
  { email_verified: undefined },
  { iss: 'accounts.google.com.evil.example' },
  { iss: 'http://accounts.google.com' },
  { iss: 'https://accounts.google.com/' },
  { iss: undefined },
  { exp: -9_999_999_999 },
  { exp: '9999999999' },
  { exp: undefined },
  { exp: null },
  { nbf: 9_999_999_999 },
]

export function pushTokenScheme(random: Random): Scheme {
  const keys = createPushKeys()
  keys.jwks()
  const config = { enabled: true, topic: 'projects/p/topics/t', webhook_url: AUDIENCE, service_account: ACCOUNT }
  const { webhook, setClock } = openWebhook(feature, config, async () => Response.json(keys.jwks()))
  const bodies = validBodies(webhook, random)
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  /** The time at which each token expires, by its text without the signature. */
  const endsMs = new Map<string, number>()
  const valid = bodies.map(({ body, atMs }): WebhookRequest => {
    const token = keys.mint(GOOD, atMs)
    endsMs.set(token.slice(0, token.lastIndexOf('.')), Math.floor(atMs / 1000) * 1000 + HOUR_MS + SKEW_MS)
    return { headers: bearer(token), query: '', body, atMs }
  })
  const refused = bodies.slice(0, 16).flatMap(({ atMs }) => WRONG.map((claims) => keys.mint({ ...GOOD, ...claims }, atMs)))
  const forger = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const [jwk] = keys.jwks().keys as [Readonly<Record<string, string>>]

  const forgeries: readonly ((token: string, random: Random) => string)[] = [
    (_token, random) => random.pick(refused),
    // The claims of one token with the signature of another.
    (token, random) => `${token.slice(0, token.lastIndexOf('.'))}.${random.pick(refused).split('.')[2]}`,
    (token, random) => `${random.pick(refused).split('.').slice(0, 2).join('.')}.${token.split('.')[2]}`,
    (token, random) => {
      const [, payload = ''] = token.split('.')
      const header = encodeJson({ alg: random.pick(['none', 'None', 'NONE', '', 'RS256', null]), typ: 'JWT', kid: 'key-1' })
      return `${header}.${payload}${random.pick(['.', '', '..', '.AA'])}`
    },
    (token, random) => {
      const [, payload = ''] = token.split('.')
      const signed = `${encodeJson({ alg: random.pick(['HS256', 'RS256', 'hs256']), kid: 'key-1', typ: 'JWT' })}.${payload}`
      const secret = random.pick([keys.publicPem(), keys.publicPem().trim(), jwk.n ?? '', JSON.stringify(jwk), '', 'key-1'])
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    },
    (token, random) => {
      const [, payload = ''] = token.split('.')
      const own = { ...forger.publicKey.export({ format: 'jwk' }), kid: 'key-1', alg: 'RS256' }
      const more = random.pick([
        {},
        { jwk: own },
        { jku: 'https://evil.example/certs' },
        { x5u: 'https://evil.example' },
        { b64: false, crit: ['b64'] },
      ])
      const signed = `${encodeJson({ alg: 'RS256', typ: 'JWT', kid: random.pick(['key-1', 'key-2', '', '../key-1']), ...more })}.${payload}`
      return `${signed}.${sign('sha256', Buffer.from(signed), forger.privateKey).toString('base64url')}`
    },
    (token, random) => {
      const [header = '', payload = '', signature = ''] = token.split('.')
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object
      return `${header}.${encodeJson({ ...claims, ...random.pick([{ exp: 9_999_999_999 }, { a: 1 }, { email: ACCOUNT }, { aud: AUDIENCE }]) })}.${signature}`
    },
  ]

  return {
    // Each mutation that looks like a token costs an RSA check.
    count: 100_000,
    webhook,
    coversBody: false,
    isTimed: true,
    valid,
    forge(request, random) {
      const token = request.headers.authorization?.replace(/^bearer +/i, '') ?? ''
      return { ...request, headers: bearer(forge(token, random)) }
    },
    proofs({ headers, atMs }) {
      const [, token = ''] = /^bearer +(\S+)$/i.exec(headers.authorization?.trim() ?? '') ?? []
      const dot = token.lastIndexOf('.')
      const endMs = endsMs.get(token.slice(0, dot))
      return endMs !== undefined && atMs < endMs ? [`${token.slice(0, dot)} ${bytesOf(token.slice(dot + 1))}`] : []
    },
    setClock,
  }

  function forge(token: string, random: Random): string {
    try {
      return random.pick(forgeries)(token, random)
    } catch {
      // An earlier change made the token unreadable.
      return random.pick(refused)
    }
  }
}

/** Decodes a signature, so that equal signatures in different base64 spellings compare equal. */
const bytesOf = (signature: string): string =>
  /^[A-Za-z0-9_+/-]*={0,2}$/.test(signature) ? Buffer.from(signature, 'base64').toString('hex') : signature
