/** Webhook requests: verifies who sent them and builds signed samples; see `docs/contract.md#signatures`. */
import {
  AppError,
  answerProvenContact,
  answerUnprovenContact,
  type HandshakeName,
  type Raw,
  type Sample,
  type SampleRequest,
  signProof,
  type Verified,
  verifyProof,
  type Webhook,
} from '@sluice/sdk/webhook'
import { parse } from './parse.ts'
import { schemeOf } from './signature.ts'

export { parse }

const BODY_BYTES_MAX = 262_144
/** How far a signed time may lie in the past or the future. */
const WINDOW_SECS = 300
const SHA256_PREFIX = 'sha256='

export interface WebhookOptions {
  /** The secret that signs requests. Empty: every request is accepted. */
  readonly secret: string
  /** The first requests that are answered, by which a service checks the address. */
  readonly handshakes?: readonly HandshakeName[]
}

/** The webhook of the channel. It needs no Sluice runtime. */
export function createWebhook(options: WebhookOptions): Webhook {
  const answered = new Set(options.handshakes)
  /** Answers a challenge in a signed body. */
  const answer = ({ headers, body }: Pick<Raw, 'headers' | 'body'>): Response | undefined => {
    if (!answered.has('challenge')) return undefined
    const get = (name: string): string | null => headers[name] ?? null
    return answerProvenContact(Buffer.from(body).toString(), { get }, () => options.secret || undefined)
  }
  return {
    path: '/webhook/channel',
    bodyBytesMax: BODY_BYTES_MAX,
    ...(options.secret === '' && { unsigned: 'secret' }),
    verify: (raw) => verify(raw, options),
    parse: (raw) => (answer(raw) ? [] : parse(raw)),
    sample: (sample) => sampleRequest(sample, options),
    ...(answered.size > 0 && {
      answer,
      contact: (request) => answerUnprovenContact(request, answered),
      handshake: (url) => answerCheck(url, answered),
    }),
  }
}

/** Answers `GET`, and `HEAD`, which is a `GET` whose answer has no body. */
function answerCheck(url: URL, answered: ReadonlySet<HandshakeName>): Response {
  const echo = answerUnprovenContact({ method: 'GET', url, headers: new Headers() }, answered)
  return echo ?? new Response('Bad Request', { status: answered.has('head') && url.search === '' ? 200 : 400 })
}

/** Throws `unauthorized` for a request without a valid signature. */
export function verify({ headers, body, receivedAtMs }: Omit<Raw, 'url'>, { secret }: WebhookOptions): Verified {
  if (secret === '') return { by: 'nothing: secret is not set' }
  const known = schemeOf(secret)
  const hasPrefix = headers[known.header]?.trim().startsWith(SHA256_PREFIX)
  const scheme = known.prefix === SHA256_PREFIX && !hasPrefix ? { ...known, prefix: '' } : known
  const proof = verifyProof(scheme, [secret], { headers, body, receivedAtMs, url: '' }, WINDOW_SECS)
  if (proof.isValid) return { by: scheme.header }
  const cause = proof.isGuess ? `${proof.reason}: is secret right?` : proof.reason
  throw new AppError('unauthorized', 'Invalid signature', { cause })
}

/** Builds a request as a sender makes it; unsigned without a secret. */
function sampleRequest({ id, sender, to, text, atMs, ignored }: Sample, { secret }: WebhookOptions): SampleRequest {
  const message = { id, sender, content: text, thread_id: to, sent_at: new Date(atMs).toISOString() }
  const body = JSON.stringify(ignored ? { id, type: 'typing', sender } : message)
  const headers = { 'content-type': 'application/json' }
  if (secret === '') return { headers, body }
  return { headers: { ...headers, ...signProof(schemeOf(secret), secret, { url: '', body, id, atMs }).headers }, body }
}
