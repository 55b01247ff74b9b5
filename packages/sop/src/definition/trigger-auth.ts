/** The keys of a webhook trigger that say how its requests prove where they come from, and how large they may be. */
import {
  HANDSHAKES,
  type HmacScheme,
  SENDER_SCHEMES,
  type SenderName,
  STANDINGS,
  type WebhookAuth,
  type WebhookScheme,
  whole,
} from '@sluice/sdk'
import * as v from 'valibot'
import type { SopCondition, SopTrigger } from './definition.ts'

/** GitHub sends no larger body. */
export const TRIGGER_BODY_BYTES_MAX = 25 * 1_048_576
const WINDOW_SECS = 300
const WINDOW_SECS_MAX = 86_400
const NAMES_MAX = 4

const SENDERS = Object.keys(SENDER_SCHEMES) as SenderName[]
/** The values of `auth`. */
export const AUTHS = ['bearer', ...SENDERS, 'hmac', 'token', 'basic', 'query'] as const
type Auth = (typeof AUTHS)[number]

const text = v.pipe(v.string(), v.minLength(1))
const headerName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'must be the name of a header'),
  v.transform((name) => name.toLowerCase()),
)
/** The name of a secret in `[sop.secrets]`. */
const secretName = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be a name of letters, digits, dashes and underscores'))

const UNITS: Readonly<Record<string, number>> = { kb: 1000, kib: 1024, mb: 1_000_000, mib: 1_048_576 }
const SIZE = 'must be a number of bytes or a size such as "512KB", up to 25MiB'

/** Returns the bytes of a size such as `5MB`; NaN for another text. */
function bytesOf(size: string | number): number {
  if (typeof size === 'number') return size
  const [, count, unit = ''] = /^(\d{1,9}) ?([KM]i?B)$/i.exec(size) ?? []
  return count === undefined ? Number.NaN : Number(count) * (UNITS[unit.toLowerCase()] ?? Number.NaN)
}

export const webhookKeys = {
  auth: v.optional(v.picklist(AUTHS), 'bearer'),
  secret: v.optional(v.union([secretName, v.pipe(v.array(secretName), v.minLength(1), v.maxLength(NAMES_MAX))])),
  role: v.optional(v.picklist(STANDINGS)),
  max_body: v.optional(
    v.pipe(
      v.union([v.number(), v.string()]),
      v.transform(bytesOf),
      v.check((bytes) => Number.isInteger(bytes) && bytes > 0 && bytes <= TRIGGER_BODY_BYTES_MAX, SIZE),
    ),
  ),
  handshake: v.optional(v.union([v.picklist(HANDSHAKES), v.array(v.picklist(HANDSHAKES))])),
  replay_window_secs: v.optional(whole(1, WINDOW_SECS_MAX)),
  header: v.optional(headerName),
  prefix: v.optional(v.string()),
  algorithm: v.optional(v.picklist(['sha1', 'sha256', 'sha512'])),
  encoding: v.optional(v.picklist(['hex', 'base64', 'base64url'])),
  key: v.optional(v.picklist(['text', 'base64'])),
  separator: v.optional(text),
  payload: v.optional(text),
  timestamp_header: v.optional(headerName),
  timestamp_item: v.optional(text),
  timestamp_member: v.optional(text),
  delivery_header: v.optional(headerName),
  delivery_member: v.optional(text),
  username: v.optional(v.pipe(v.string(), v.regex(/^[^:]+$/, 'must not be empty or contain a colon'))),
  parameter: v.optional(text),
}

export type WebhookKeys = { readonly [Key in keyof typeof webhookKeys]?: v.InferOutput<(typeof webhookKeys)[Key]> }

/** The keys that each authentication of its own takes, in addition to `secret` and `max_body`. */
const DELIVERY_KEYS = ['delivery_header', 'delivery_member'] as const
const TIME_KEYS = ['timestamp_header', 'timestamp_item', 'timestamp_member'] as const
const OWN_KEYS: Readonly<Partial<Record<Auth, readonly (keyof WebhookKeys)[]>>> = {
  hmac: [
    ...(['header', 'prefix', 'algorithm', 'encoding', 'key', 'separator', 'payload', 'replay_window_secs'] as const),
    ...TIME_KEYS,
    ...DELIVERY_KEYS,
  ],
  token: ['header', 'prefix', ...DELIVERY_KEYS],
  basic: ['username', ...DELIVERY_KEYS],
  query: ['parameter', ...DELIVERY_KEYS],
}

export interface KeyProblem {
  readonly key: keyof WebhookKeys
  readonly message: string
}

/** Returns the keys of a webhook trigger that are missing, or that its `auth` does not take. */
export function authProblems(keys: WebhookKeys): KeyProblem[] {
  const { auth = 'bearer' } = keys
  if (auth !== 'bearer' && keys.secret === undefined) {
    return [{ key: 'auth', message: `auth = "${auth}" needs \`secret\`, the name of a secret in [sop.secrets]` }]
  }
  const taken = new Set<string>([
    'auth',
    'max_body',
    ...(auth === 'bearer' ? ['role'] : ['secret', 'handshake']),
    ...(OWN_KEYS[auth] ?? []),
  ])
  if (auth in SENDER_SCHEMES && (SENDER_SCHEMES[auth as SenderName] as Partial<HmacScheme>).timestamp) taken.add('replay_window_secs')
  const foreign = (Object.keys(webhookKeys) as (keyof WebhookKeys)[]).filter((key) => keys[key] !== undefined && !taken.has(key))
  const problems = foreign.map((key) => ({ key, message: `auth = "${auth}" does not take this key` }))
  return [...problems, ...(auth === 'hmac' ? hmacProblems(keys) : []), ...(auth === 'token' ? missing(keys, 'header') : [])]
}

const missing = (keys: WebhookKeys, key: keyof WebhookKeys): KeyProblem[] =>
  keys[key] === undefined ? [{ key: 'auth', message: `auth = "${keys.auth}" needs \`${key}\`` }] : []

function hmacProblems(keys: WebhookKeys): KeyProblem[] {
  const { payload = '{body}' } = keys
  const names = [...payload.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name)
  const problem = (message: string): KeyProblem[] => [{ key: keys.payload === undefined ? 'auth' : 'payload', message }]
  const unknown = names.find((name) => !['body', 'timestamp', 'id', 'url', 'form'].includes(name))
  if (unknown !== undefined) return problem(`{${unknown}} is no part of a request; use {body}, {timestamp}, {id}, {url} and {form}`)
  if (!names.includes('body') && !names.includes('form')) return problem('the signature must cover {body}')
  const times = TIME_KEYS.filter((key) => keys[key] !== undefined)
  const [, second] = times
  if (second) return [{ key: second, message: `the time comes from \`${times[0]}\` already` }]
  const isTimeSigned = names.includes('timestamp')
  if (isTimeSigned && (times.length === 0 || keys.timestamp_member !== undefined)) {
    return problem('{timestamp} needs `timestamp_header` or `timestamp_item`')
  }
  if (!isTimeSigned && times[0] !== undefined && times[0] !== 'timestamp_member') {
    return [{ key: times[0], message: 'the signature does not cover the time; add {timestamp} to `payload`' }]
  }
  if (names.includes('id') && keys.delivery_header === undefined) return problem('{id} needs `delivery_header`')
  return missing(keys, 'header')
}

/** Makes the trigger of its valid keys. */
export function webhookTrigger(path: string, condition: SopCondition, keys: WebhookKeys): SopTrigger {
  const { auth = 'bearer', role, secret = [], max_body, handshake, replay_window_secs = WINDOW_SECS } = keys
  const secrets = typeof secret === 'string' ? [secret] : secret
  const handshakes = handshake === undefined ? {} : { handshakes: [handshake].flat() }
  const own: WebhookAuth | undefined =
    auth === 'bearer' ? undefined : { name: auth, scheme: schemeOf(auth, keys), secrets, windowSecs: replay_window_secs, ...handshakes }
  return {
    type: 'webhook',
    path,
    condition,
    ...(own && { auth: own }),
    ...(role && { role }),
    ...(max_body !== undefined && { bodyBytesMax: max_body }),
  }
}

function schemeOf(auth: Exclude<Auth, 'bearer'>, keys: WebhookKeys): WebhookScheme {
  const { delivery_header, delivery_member, header = '', prefix, parameter = 'token', username = 'sluice' } = keys
  const delivery = { ...(delivery_header && { idHeaders: [delivery_header] }), ...(delivery_member && { idMember: delivery_member }) }
  const withPrefix = prefix ? { prefix } : {}
  switch (auth) {
    case 'hmac':
      return { kind: 'hmac', header, ...withPrefix, ...hmacOf(keys), ...delivery }
    case 'token':
      return { kind: 'token', header, ...withPrefix, ...delivery }
    case 'basic':
      return { kind: 'basic', username, ...delivery }
    case 'query':
      return { kind: 'query', parameter, ...delivery }
    default:
      return SENDER_SCHEMES[auth]
  }
}

function hmacOf(keys: WebhookKeys): Omit<HmacScheme, 'kind' | 'header'> {
  const { algorithm = 'sha256', encoding = 'hex', payload = '{body}', key, separator } = keys
  const { timestamp_header, timestamp_item, timestamp_member } = keys
  return {
    algorithm,
    encoding,
    ...(encoding === 'base64' && { takesUrlForm: true }),
    payload,
    ...(key && { key }),
    ...(separator && { separator }),
    ...(timestamp_header && { timestamp: { header: timestamp_header } }),
    ...(timestamp_item && { timestamp: { item: timestamp_item } }),
    ...(timestamp_member && { timestamp: { member: timestamp_member } }),
  }
}
