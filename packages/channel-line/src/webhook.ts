/** Webhook requests: verifies the HMAC-SHA256 of the body in `X-Line-Signature` and builds signed samples; see `docs/contract.md#signatures`. */
import { list, members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import {
  AppError,
  bodyHmac,
  type Inbound,
  type Raw,
  type Sample,
  type SampleRequest,
  signProof,
  type Verified,
  verifyProof,
  type Webhook,
} from '@sluice/sdk/webhook'
import { type Accepted, parse } from './parse.ts'

export { parse }

const BODY_BYTES_MAX = 262_144
/**
 * The inbox recognises a repeated message for 72 hours at least, `[delivery] dedupe_hours`. An older request could be a recorded
 * one that an attacker sends again.
 */
const AGE_MS_MAX = 71 * 3_600_000
const SCHEME = bodyHmac('x-line-signature', { encoding: 'base64' })
/** The account and the reply token of samples. LINE knows neither, so a reply is pushed. */
const SAMPLE_ACCOUNT = `U${'0'.repeat(32)}`
const SAMPLE_TOKEN = '0'.repeat(32)

export interface LineWebhookOptions extends Accepted {
  /** The channel secret, which signs requests. Empty: every request is accepted. */
  readonly secret: string
  /** Resolves to a message with the name of its sender. */
  naming?(message: Inbound): Promise<Inbound>
}

/** The webhook of the platform. It needs no Sluice runtime. */
export const createWebhook = (options: LineWebhookOptions): Webhook => ({
  path: '/line',
  bodyBytesMax: BODY_BYTES_MAX,
  ...(options.secret === '' && { unsigned: 'channel_secret' }),
  verify: (raw) => verifyRecent(raw, options),
  parsesBodyAlone: true,
  parse: (raw) => parseNamed(raw, options),
  sample: (sample) => sampleRequest(sample, options),
})

function parseNamed(raw: Raw, options: LineWebhookOptions): readonly Inbound[] | Promise<readonly Inbound[]> {
  const messages = parse(raw, options)
  const { naming } = options
  return naming ? Promise.all(messages.map((message) => naming(message))) : messages
}

/** Throws `unauthorized` for a request without a valid signature. */
export function verify({ headers, body }: Pick<Raw, 'headers' | 'body'>, { secret }: Pick<LineWebhookOptions, 'secret'>): Verified {
  if (secret === '') return { by: 'nothing: channel_secret is not set' }
  const proof = verifyProof(SCHEME, [secret], { headers, body, url: '', receivedAtMs: 0 })
  if (proof.isValid) return { by: SCHEME.header }
  const cause = proof.isGuess ? `${proof.reason}: is channel_secret the secret of this channel?` : proof.reason
  throw new AppError('unauthorized', 'Invalid signature', { cause })
}

/** Throws `unauthorized` for a signed request whose newest event is too old, too. Without a secret the times could be anything. */
function verifyRecent(raw: Raw, options: LineWebhookOptions): Verified {
  const verified = verify(raw, options)
  if (options.secret === '') return verified
  const times = list(members(parsedOrUndefined(raw.body)).events).flatMap((event) => {
    const { timestamp } = members(event)
    return typeof timestamp === 'number' ? [timestamp] : []
  })
  const newestMs = times.reduce((newest, time) => Math.max(newest, time), Number.NEGATIVE_INFINITY)
  if (times.length === 0 || raw.receivedAtMs - newestMs <= AGE_MS_MAX) return verified
  throw new AppError('unauthorized', 'Invalid signature', { cause: 'the events are more than 71 hours old' })
}

/** Builds a request as LINE sends it; unsigned without a secret. A sample to be ignored is what LINE sends to check the URL. */
function sampleRequest({ sender, to, text, id, atMs, ignored }: Sample, { secret }: LineWebhookOptions): SampleRequest {
  const source = to === undefined || to === sender ? { type: 'user', userId: sender } : { type: 'group', groupId: to, userId: sender }
  const mention = { mentionees: [{ index: 0, length: 5, type: 'user', userId: SAMPLE_ACCOUNT, isSelf: true }] }
  const isGroup = source.type === 'group'
  const event = {
    type: 'message',
    mode: 'active',
    timestamp: atMs,
    webhookEventId: id,
    deliveryContext: { isRedelivery: false },
    replyToken: SAMPLE_TOKEN,
    source,
    message: { id, type: 'text', text: isGroup ? `@line ${text}` : text, ...(isGroup && { mention }) },
  }
  const body = JSON.stringify({ destination: SAMPLE_ACCOUNT, events: ignored ? [] : [event] })
  const headers = { 'content-type': 'application/json; charset=utf-8', 'user-agent': 'LineBotWebhook/2.0' }
  if (secret === '') return { headers, body }
  return { headers: { ...headers, ...signProof(SCHEME, secret, { url: '', body, id, atMs }).headers }, body }
}
