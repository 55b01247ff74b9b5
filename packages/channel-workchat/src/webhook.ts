/**
 * Webhook requests: verifies where they come from and builds signed samples; see `docs/contract.md#signatures`. With an Encrypt Key
 * the platform encrypts and signs each request; without one, the request contains the Verification Token.
 */
import { createHash } from 'node:crypto'
import { type Members, members, parsedOrUndefined, parseObject, text, textAt } from '@sluice/kit/foreign-json'
import {
  AppError,
  equalTexts,
  type Inbound,
  isFresh,
  type Raw,
  type Sample,
  type SampleRequest,
  type Verified,
  type Webhook,
} from '@sluice/sdk/webhook'
import { decrypt, encrypt } from './decrypt.ts'
import { type Bot, eventType, hasMentions, type Identity, identityIn, messageIn, PRESSED, parseEvent, RECEIVED } from './parse.ts'

type Signed = Pick<Raw, 'headers' | 'body' | 'receivedAtMs'>

/** An encrypted message of the longest text is smaller. */
const BODY_BYTES_MAX = 1_048_576
/** How far a timestamp may lie in the past or the future. */
const WINDOW_SECS = 300
/** A timestamp above it is in milliseconds. */
const SECONDS_MAX = 100_000_000_000
const CHALLENGE = 'url_verification'
const IGNORED = 'im.message.message_read_v1'
const SAMPLE_CHAT = 'oc_sample'

export interface WorkchatWebhookOptions {
  readonly path: '/workchat' | '/workchat_cn'
  /** The id of the app. */
  readonly appId: string
  /** The Encrypt Key and the Verification Token. Without both, every request is accepted. */
  readonly encryptKey?: string
  readonly verificationToken?: string
  /** Leaves out messages in groups that do not mention the bot, or with `overhears` returns them with `overheardOnly`. */
  readonly mentionOnly?: boolean
  readonly overhears?: boolean
  readonly threadReplies?: boolean
  /** Returns the open id of the bot, to recognise its mentions; asked only for messages with mentions. */
  botOpenId?(): Promise<string | undefined>
  /** Resolves to a message with its quote and the name of its sender, of which the request has only the ids. */
  completing?(message: Inbound): Promise<Inbound>
  /** Called with the ids of each person who writes or presses a button. */
  onIdentity?(identity: Identity): void
}

/** The webhook of the platform. It needs no Sluice runtime. */
export const createWebhook = (options: WorkchatWebhookOptions): Webhook => ({
  path: options.path,
  bodyBytesMax: BODY_BYTES_MAX,
  ...(isUnsigned(options) && { unsigned: 'encrypt_key' }),
  verify: (raw) => verify(raw, options),
  parse: (raw) => parse(raw, options),
  answer: (raw) => answer(raw, options),
  sample: (sample) => sampleRequest(sample, options),
})

type Keys = Pick<WorkchatWebhookOptions, 'encryptKey' | 'verificationToken'>

const isUnsigned = ({ encryptKey, verificationToken }: Keys): boolean => encryptKey === undefined && verificationToken === undefined

/** Verifies the raw bytes. Throws `unauthorized`. */
export function verify(raw: Signed, keys: Keys): Verified {
  const { encryptKey, verificationToken } = keys
  if (encryptKey !== undefined) return verifySignature(raw, encryptKey, keys)
  if (verificationToken !== undefined) return verifyToken(members(parsedOrUndefined(raw.body)), verificationToken)
  return { by: 'nothing: neither encrypt_key nor verification_token is set' }
}

function verifySignature(raw: Signed, encryptKey: string, keys: Keys): Verified {
  const given = header(raw, 'x-lark-signature')
  // The check of the URL may come without a signature. Only the platform can encrypt it, and it starts no turn.
  if (given === '' && isEncryptedChallenge(raw, keys)) return { by: 'the encrypted challenge' }
  const [time, nonce] = [header(raw, 'x-lark-request-timestamp'), header(raw, 'x-lark-request-nonce')]
  if (given === '' || time === '' || nonce === '') throw refused('x-lark-signature, -request-timestamp or -request-nonce is missing')
  if (!isTimely(time, raw)) throw refused('x-lark-request-timestamp is not within 300 s')
  if (!equalTexts(signatureOf(time, nonce, encryptKey, raw.body), given.toLowerCase())) throw refused('x-lark-signature is wrong')
  return { by: 'x-lark-signature' }
}

function isEncryptedChallenge({ body }: Signed, keys: Keys): boolean {
  try {
    const outer = parseObject(body)
    const envelope = envelopeOf(body, keys)
    const { verificationToken = text(envelope.token) } = keys
    return typeof outer.encrypt === 'string' && envelope.type === CHALLENGE && equalTexts(verificationToken, text(envelope.token))
  } catch {
    return false
  }
}

function verifyToken(envelope: Members, token: string): Verified {
  const given = textAt(envelope, 'header.token', 'token')
  if (given === '') throw refused('the request contains no token')
  if (!equalTexts(token, given)) throw refused('the token is not the verification_token')
  return { by: 'verification_token' }
}

const refused = (cause: string): AppError => new AppError('unauthorized', 'Invalid signature', { cause })

/** A plain hash and no HMAC, as the platform defines it. */
const signatureOf = (time: string, nonce: string, encryptKey: string, body: Uint8Array | string): string =>
  createHash('sha256').update(time).update(nonce).update(encryptKey).update(body).digest('hex')

const header = ({ headers }: Signed, name: string): string => headers[name]?.trim() ?? ''

function isTimely(time: string, { receivedAtMs }: Signed): boolean {
  if (!/^\d{1,15}$/.test(time)) return false
  const number = Number(time)
  return isFresh(number > SECONDS_MAX ? Math.floor(number / 1000) : number, receivedAtMs, WINDOW_SECS)
}

/** Parses a verified request. Throws `invalid_request`, and `unavailable` while the bot's id is needed and cannot be read. */
export async function parse(raw: Pick<Raw, 'body'>, options: WorkchatWebhookOptions): Promise<readonly Inbound[]> {
  const envelope = envelopeOf(raw.body, options)
  const identity = identityIn(envelope)
  if (identity) options.onIdentity?.(identity)
  const { completing, overhears = false } = options
  const parsed = parseEvent(envelope, await botOf(envelope, options))
  const messages = parsed.filter(({ overheardOnly }) => overhears || !overheardOnly)
  return completing ? Promise.all(messages.map((message) => completing(message))) : messages
}

async function botOf(envelope: Members, options: WorkchatWebhookOptions): Promise<Bot> {
  const { appId: account, mentionOnly = false, threadReplies = false } = options
  const isAsked = hasMentions(messageIn(envelope))
  const openId = isAsked ? await options.botOpenId?.().catch(() => unknownBot(mentionOnly)) : undefined
  return { account, openId, mentionOnly, threadReplies }
}

/** Without the id, a mention of the bot stays in the text. With `mentionOnly`, the platform must send the message again later. */
function unknownBot(mentionOnly: boolean): undefined {
  if (mentionOnly) throw new AppError('unavailable', 'workchat does not tell the id of the bot, by which messages mention it')
}

/** Answers the check of the URL with its challenge, and a pressed button with an empty object: any other member would have a meaning. */
function answer({ body }: Pick<Raw, 'body'>, keys: Keys): Response | undefined {
  const envelope = envelopeOf(body, keys)
  if (envelope.type === CHALLENGE) return Response.json({ challenge: text(envelope.challenge) })
  return eventType(envelope) === PRESSED ? Response.json({}) : undefined
}

/** Returns the decrypted request. Throws `invalid_request`. */
function envelopeOf(body: Uint8Array, { encryptKey }: Keys): Members {
  const outer = parseObject(body)
  if (typeof outer.encrypt !== 'string') return outer
  if (encryptKey === undefined) throw new AppError('invalid_request', 'Invalid JSON payload: it is encrypted, and encrypt_key is not set')
  return parseObject(decrypt(outer.encrypt, encryptKey))
}

/** Builds a request as the platform sends it: encrypted and signed, or with the token. */
function sampleRequest(sample: Sample, { appId, encryptKey, verificationToken = '' }: WorkchatWebhookOptions): SampleRequest {
  const time = String(sample.atMs)
  const body = JSON.stringify({
    schema: '2.0',
    header: {
      event_id: sample.id,
      event_type: sample.ignored ? IGNORED : RECEIVED,
      create_time: time,
      token: verificationToken,
      app_id: appId,
      tenant_key: 'sample',
    },
    event: sample.ignored ? {} : sampleEvent(sample, time),
  })
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  const unanswerable = sample.to === undefined && { unanswerable: true as const }
  if (encryptKey === undefined) return { headers, body, ...unanswerable }
  const encrypted = JSON.stringify({ encrypt: encrypt(body, encryptKey) })
  return { headers: { ...headers, ...signed(encrypted, encryptKey, sample.atMs) }, body: encrypted, ...unanswerable }
}

const sampleEvent = ({ sender, to = SAMPLE_CHAT, text: said, id }: Sample, time: string): object => ({
  sender: { sender_id: { open_id: sender }, sender_type: 'user', tenant_key: 'sample' },
  message: {
    message_id: id,
    create_time: time,
    chat_id: to,
    chat_type: 'p2p',
    message_type: 'text',
    content: JSON.stringify({ text: said }),
  },
})

function signed(body: string, encryptKey: string, atMs: number): Record<string, string> {
  const [time, nonce] = [String(Math.floor(atMs / 1000)), 'sample']
  return {
    'x-lark-request-timestamp': time,
    'x-lark-request-nonce': nonce,
    'x-lark-signature': signatureOf(time, nonce, encryptKey, body),
  }
}
