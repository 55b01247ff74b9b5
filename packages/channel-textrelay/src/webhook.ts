/**
 * Webhook requests: verifies where they come from and builds signed samples; see `docs/contract.md#signatures`. The platform
 * signs each request twice: with its own headers and with the headers of Standard Webhooks.
 */
import {
  AppError,
  bodyHmac,
  isFresh,
  type Raw,
  type Sample,
  type SampleRequest,
  SENDER_SCHEMES,
  signProof,
  type Verified,
  verifyProof,
  type Webhook,
} from '@sluice/sdk/webhook'
import { parse } from './parse.ts'

export { parse }

/** The parts of a request that the signatures cover. */
type Signed = Pick<Raw, 'headers' | 'body' | 'receivedAtMs'>

const BODY_BYTES_MAX = 262_144
/** How far a timestamp may lie in the past or the future. */
const WINDOW_SECS = 300
const STANDARD = SENDER_SCHEMES['standard-webhooks']
/** The platform's own signature. Its prefix `sha256=` is optional. */
const LEGACY = bodyHmac('x-webhook-signature', { payload: '{timestamp}.{body}', timestamp: { header: 'x-webhook-timestamp' } })
const SAMPLE_ID = '00000000-0000-4000-8000-000000000000'

export interface TextrelayWebhookOptions {
  /** The secret that signs requests. Empty: every request with a timestamp within 300 s or without one is accepted. */
  readonly secret: string
  /** Our own number. */
  readonly fromPhone: string
}

/** The webhook of the platform. It needs no Sluice runtime. */
export const createWebhook = (options: TextrelayWebhookOptions): Webhook => ({
  path: '/textrelay',
  bodyBytesMax: BODY_BYTES_MAX,
  ...(options.secret === '' && { unsigned: 'signing_secret' }),
  verify: (raw) => verify(raw, options),
  parsesBodyAlone: true,
  parse: (raw) => parse(raw, options),
  sample: (sample) => sampleRequest(sample, options),
})

/** Accepts a request if either of its signatures is valid. Throws `unauthorized` otherwise. */
export function verify(raw: Signed, { secret }: Pick<TextrelayWebhookOptions, 'secret'>): Verified {
  if (secret === '') return verifyTimes(raw)
  const standard = standardProblem(raw, secret)
  if (standard === undefined) return { by: 'webhook-signature' }
  const legacy = legacyProblem(raw, secret)
  if (legacy === undefined) return { by: 'x-webhook-signature' }
  throw new AppError('unauthorized', 'Invalid signature', { cause: `${standard}; ${legacy}` })
}

/**
 * Checks the timestamps of a request when no signing secret is set: throws `unauthorized` for a timestamp that is more than
 * 300 s away, so that an old request does not run again by mistake. A forger can omit the timestamp.
 */
function verifyTimes(raw: Signed): Verified {
  const stale = ['webhook-timestamp', 'x-webhook-timestamp'].find(
    (name) => raw.headers[name] !== undefined && !isTimely(header(raw, name), raw),
  )
  if (stale !== undefined) throw new AppError('unauthorized', 'Invalid signature', { cause: `${stale} is not within 300 s` })
  return { by: 'nothing: signing_secret is not set' }
}

/** Builds a request as the platform sends it, with both signatures if the secret allows; unsigned without a secret. */
function sampleRequest(sample: Sample, { fromPhone, secret }: TextrelayWebhookOptions): SampleRequest {
  const eventType = sample.ignored ? 'message.delivered' : 'message.received'
  const body = JSON.stringify({
    api_version: 'v3',
    webhook_version: '2026-02-03',
    event_type: eventType,
    event_id: sample.id,
    created_at: new Date(sample.atMs).toISOString(),
    data: {
      id: sample.id,
      direction: sample.ignored ? 'outbound' : 'inbound',
      chat: { id: sample.to ?? SAMPLE_ID, is_group: false, owner_handle: { handle: fromPhone, is_me: true } },
      sender_handle: { handle: sample.ignored ? fromPhone : sample.sender, is_me: sample.ignored === true },
      parts: [{ type: 'text', value: sample.text }],
    },
  })
  const headers = { 'content-type': 'application/json', 'x-webhook-event': eventType, 'x-webhook-subscription-id': SAMPLE_ID }
  return { headers: { ...headers, ...signatures(sample, body, secret) }, body }
}

function standardProblem(raw: Signed, secret: string): string | undefined {
  if (!secret.startsWith('whsec_')) return 'webhook-signature needs a signing secret that begins with whsec_'
  const proof = verifyProof(STANDARD, [secret], signedRequest(raw), WINDOW_SECS)
  return proof.isValid ? undefined : `webhook-signature: ${proof.reason}`
}

function legacyProblem(raw: Signed, secret: string): string | undefined {
  const prefix = header(raw, LEGACY.header).startsWith('sha256=') ? 'sha256=' : ''
  const proof = verifyProof({ ...LEGACY, prefix }, [secret], signedRequest(raw), WINDOW_SECS)
  return proof.isValid ? undefined : `x-webhook-signature: ${proof.reason}`
}

const signedRequest = ({ headers, body, receivedAtMs }: Signed) => ({ headers, body, receivedAtMs, url: '' })

function signatures({ id, atMs }: Sample, body: string, secret: string): Record<string, string> {
  if (secret === '') return {}
  const request = { url: '', body, id, atMs }
  const isStandard = secret.startsWith('whsec_')
  return { ...signProof(LEGACY, secret, request).headers, ...(isStandard && signProof(STANDARD, secret, request).headers) }
}

const header = ({ headers }: Signed, name: string): string => headers[name]?.trim() ?? ''

const isTimely = (time: string, { receivedAtMs }: Signed): boolean => /^\d+$/.test(time) && isFresh(Number(time), receivedAtMs, WINDOW_SECS)
