/**
 * Webhook requests: verifies the HMAC-SHA256 of the body in `X-Hub-Signature-256`, answers the platform's check of the URL and
 * builds signed samples; see `docs/contract.md#signatures`.
 */
import { normaliseNumber } from '@sluice/kit/phone-numbers'
import {
  AppError,
  bodyHmac,
  equalTexts,
  type Raw,
  type Sample,
  type SampleRequest,
  signProof,
  type Verified,
  verifyProof,
  type Webhook,
} from '@sluice/sdk/webhook'
import { parse, reportsIn } from './parse.ts'

export { parse }

/** The platform sends missed messages in batches of up to 3 MB. */
const BODY_BYTES_MAX = 3 * 1_048_576
const SIGNATURE_HEADER = 'x-hub-signature-256'
const SCHEME = bodyHmac(SIGNATURE_HEADER, { prefix: 'sha256=' })

export interface ChatappWebhookOptions {
  /** The app secret, which signs requests. Empty: every request is accepted. */
  readonly secret: string
  /** The token of the platform's check of the URL. Empty: every check is refused. */
  readonly verifyToken: string
  /** The platform's id of our number; messages to another number are ignored. */
  readonly account: string
}

/** The webhook of the platform. It needs no Sluice runtime. */
export const createWebhook = (options: ChatappWebhookOptions): Webhook => ({
  path: '/chatapp',
  bodyBytesMax: BODY_BYTES_MAX,
  ...(options.secret === '' && { unsigned: 'app_secret' }),
  handshake: (url) => answerHandshake(url, options),
  handshakeQuery: (challenge) => handshakeQuery(challenge, options),
  verify: (raw) => verify(raw, options),
  parsesBodyAlone: true,
  parse: (raw) => parse(raw, options),
  reports: (raw) => reportsIn(raw, options),
  sample: (sample) => sampleRequest(sample, options),
})

/** Throws `unauthorized` for a request without a valid signature. */
export function verify({ headers, body }: Pick<Raw, 'headers' | 'body'>, { secret }: Pick<ChatappWebhookOptions, 'secret'>): Verified {
  if (secret === '') return { by: 'nothing: app_secret is not set' }
  const proof = verifyProof(SCHEME, [secret], { headers, body, url: '', receivedAtMs: 0 })
  if (proof.isValid) return { by: SIGNATURE_HEADER }
  const cause = proof.isGuess ? `${proof.reason}: is app_secret the secret of this app?` : proof.reason
  throw new AppError('unauthorized', 'Invalid signature', { cause })
}

/** Answers the platform's GET check of the URL: returns the challenge to a caller that knows `verifyToken`. */
function answerHandshake({ searchParams }: URL, { verifyToken }: ChatappWebhookOptions): Response {
  const isKnown = verifyToken !== '' && equalTexts(searchParams.get('hub.verify_token') ?? '', verifyToken)
  if (!isKnown || searchParams.get('hub.mode') !== 'subscribe') return plainText(403, 'Forbidden')
  const challenge = searchParams.get('hub.challenge')
  return challenge ? plainText(200, challenge) : plainText(400, 'Missing hub.challenge')
}

/** The challenge is text of the caller, so the headers keep browsers from rendering it as HTML. */
const plainText = (status: number, text: string): Response =>
  new Response(text, { status, headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' } })

/** Returns the query of the platform's check of the URL. */
const handshakeQuery = (challenge: string, { verifyToken }: ChatappWebhookOptions): Readonly<Record<string, string>> => ({
  'hub.mode': 'subscribe',
  'hub.verify_token': verifyToken,
  'hub.challenge': challenge,
})

/** Builds a request as the platform sends it; unsigned without a secret. */
function sampleRequest(sample: Sample, { account, secret }: ChatappWebhookOptions): SampleRequest {
  const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: account }, ...eventOf(sample) }
  const payload = { object: 'whatsapp_business_account', entry: [{ id: '100000000000000', changes: [{ value, field: 'messages' }] }] }
  const body = escapeNonAscii(JSON.stringify(payload))
  const headers = { 'content-type': 'application/json' }
  if (secret === '') return { headers, body }
  const signed = signProof(SCHEME, secret, { url: '', body, id: sample.id, atMs: sample.atMs })
  return { headers: { ...headers, ...signed.headers }, body }
}

/** Returns a text message, or a delivery report for a sample that is to be ignored. */
function eventOf({ sender, text, id, atMs, ignored }: Sample): object {
  const timestamp = String(Math.floor(atMs / 1000))
  const user = normaliseNumber(sender)
  const number = user.startsWith('+') ? user.slice(1) : undefined
  if (ignored) return { statuses: [{ id, status: 'delivered', timestamp, recipient_id: number ?? user }] }
  const from = number === undefined ? { from_user_id: user } : { from: number }
  return {
    contacts: [number === undefined ? { user_id: user } : { wa_id: number }],
    messages: [{ ...from, id, timestamp, type: 'text', text: { body: text } }],
  }
}

/** The platform sends and signs ASCII with escapes. */
const escapeNonAscii = (json: string): string =>
  json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
