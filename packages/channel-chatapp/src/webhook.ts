/**
 * Webhook requests: verifies the HMAC-SHA256 of the body in `X-Hub-Signature-256`, answers the platform's check of the URL and
 * builds signed samples; see `docs/contract.md#signatures`.
 */
import { normaliseNumber } from '@sluice/kit/phone-numbers'
import {
  AppError,
  equalTexts,
  hmacSha256,
  type Raw,
  type Sample,
  type SampleRequest,
  type Secret,
  type Verified,
  verifyHmac,
} from '@sluice/sdk'

const SIGNATURE_HEADER = 'x-hub-signature-256'
const SIGNATURE_PREFIX = 'sha256='

/** Returns whether a secret is set and not blank. */
export const isConfigured = (secret: Secret | undefined): secret is Secret => secret !== undefined && secret.reveal().trim() !== ''

/** Throws `unauthorized` for a request without a valid signature. Accepts every request when no secret is configured. */
export function verify({ headers, body }: Raw, secret: Secret | undefined): Verified {
  if (!isConfigured(secret)) return { by: 'nothing: app_secret is not set' }
  const signature = headers[SIGNATURE_HEADER]?.trim()
  if (!signature) throw refused(`${SIGNATURE_HEADER} is missing`)
  if (!signature.startsWith(SIGNATURE_PREFIX)) throw refused(`${SIGNATURE_HEADER} does not begin with ${SIGNATURE_PREFIX}`)
  if (!verifyHmac(secret.reveal().trim(), [body], signature, { prefix: SIGNATURE_PREFIX })) {
    throw refused(`${SIGNATURE_HEADER} does not match the body: is app_secret the secret of this app?`)
  }
  return { by: SIGNATURE_HEADER }
}

const refused = (reason: string): AppError => new AppError('unauthorized', 'Invalid signature', { cause: reason })

/** Answers the platform's GET check of the URL: returns the challenge to a caller that knows `verifyToken`. */
export function answerHandshake({ searchParams }: URL, verifyToken: Secret): Response {
  const expected = verifyToken.reveal().trim()
  const isKnown = expected !== '' && equalTexts(searchParams.get('hub.verify_token') ?? '', expected)
  if (!isKnown || searchParams.get('hub.mode') !== 'subscribe') return plainText(403, 'Forbidden')
  const challenge = searchParams.get('hub.challenge')
  return challenge ? plainText(200, challenge) : plainText(400, 'Missing hub.challenge')
}

/** The challenge is text of the caller, so the headers keep browsers from rendering it as HTML. */
const plainText = (status: number, text: string): Response =>
  new Response(text, { status, headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' } })

/** Returns the query of the platform's check of the URL. */
export const handshakeQuery = (challenge: string, verifyToken: Secret): Readonly<Record<string, string>> => ({
  'hub.mode': 'subscribe',
  'hub.verify_token': verifyToken.reveal().trim(),
  'hub.challenge': challenge,
})

/** Builds a request as the platform sends it; unsigned without a secret. `account` is the platform's id of our number. */
export function sampleRequest(sample: Sample, account: string, secret: Secret | undefined): SampleRequest {
  const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: account }, ...eventOf(sample) }
  const payload = { object: 'whatsapp_business_account', entry: [{ id: '100000000000000', changes: [{ value, field: 'messages' }] }] }
  const body = escapeNonAscii(JSON.stringify(payload))
  const headers = { 'content-type': 'application/json' }
  if (!isConfigured(secret)) return { headers, body }
  const signature = SIGNATURE_PREFIX + hmacSha256(secret.reveal().trim(), body).toString('hex')
  return { headers: { ...headers, [SIGNATURE_HEADER]: signature }, body }
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
