/** Signs and verifies webhook requests by a `WebhookScheme`. */
import { isFresh } from '../values/fresh.ts'
import { type Bytes, equalTexts, hmac, verifyHmac } from '../values/hmac.ts'
import type { HmacScheme, WebhookScheme } from './webhook-scheme.ts'

/** The parts of a request that schemes read. */
export interface SignedRequest {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The address that the sender called, with the query. */
  readonly url: string
  readonly body: Uint8Array
  readonly receivedAtMs: number
}

export type Proof =
  | {
      readonly isValid: true
      /** The same for each repeat of a delivery, and unique among the deliveries of a sender; absent if the sender names none. */
      readonly deliveryId?: string
    }
  | {
      readonly isValid: false
      /** Why the request is refused, without secrets; for logs. */
      readonly reason: string
      /** True: the request brings a wrong proof. False: it brings none, it is late, or no secret is set. */
      readonly isGuess: boolean
    }

/** The items of a signature's header: several keys and versions while a sender changes them. */
const ITEMS_MAX = 8
/** One item, such as `v1=…`. Other text in the header means that it was changed or sent twice. */
const LABELLED = /^\w+[=,:][A-Za-z0-9+/_-]+={0,2}$/
const BARE = /^[A-Za-z0-9+/_-]+={0,2}$/
const ID_CHARS_MAX = 512
const FORM_FIELDS_MAX = 1000
/** A Unix time in seconds has at most 11 digits until the year 5138. */
const SECONDS_DIGITS_MAX = 11
const ISO_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/

/**
 * Verifies that the sender of a request knows one of the secrets. `windowSecs` is the largest distance of a signed time from
 * `receivedAtMs`. Compares in constant time. Never throws.
 */
export function verifyProof(scheme: WebhookScheme, secrets: readonly string[], request: SignedRequest, windowSecs = 300): Proof {
  // An empty key would be known to everyone.
  const known = secrets.filter((secret) => secret !== '')
  if (known.length === 0) return invalid('no secret is set')
  if (scheme.kind === 'hmac') return verifySignature(scheme, known, request, windowSecs)
  const { given, where } = tokenIn(scheme, request)
  if (given === undefined) return invalid(`${where} is missing`)
  if (!known.some((secret) => equalTexts(given, tokenFor(scheme, secret)))) return invalid(`${where} is wrong`, true)
  return valid(deliveryIdOf(scheme, request))
}

const invalid = (reason: string, isGuess = false): Proof => ({ isValid: false, reason, isGuess })
const valid = (deliveryId: string | undefined): Proof => ({ isValid: true, ...(deliveryId !== undefined && { deliveryId }) })

type SecretScheme = Exclude<WebhookScheme, HmacScheme>

function tokenIn(scheme: SecretScheme, request: SignedRequest): { readonly given: string | undefined; readonly where: string } {
  if (scheme.kind === 'query') {
    const values = URL.parse(request.url)?.searchParams.getAll(scheme.parameter) ?? []
    return { given: values.length === 1 ? values[0] : undefined, where: `the parameter ${scheme.parameter}` }
  }
  const name = scheme.kind === 'basic' ? 'authorization' : scheme.header
  const value = header(request, name)
  // The name of an authentication scheme may be in any case.
  return { given: scheme.kind === 'basic' ? value?.replace(/^basic +/i, 'Basic ') : value, where: `the header ${name}` }
}

function tokenFor(scheme: SecretScheme, secret: string): string {
  if (scheme.kind === 'basic') return `Basic ${Buffer.from(`${scheme.username}:${secret}`).toString('base64')}`
  // HTTP reads each byte of a header as one character.
  return scheme.kind === 'token' ? Buffer.from(`${scheme.prefix ?? ''}${secret}`).toString('latin1') : secret
}

function verifySignature(scheme: HmacScheme, secrets: readonly string[], request: SignedRequest, windowSecs: number): Proof {
  const { header: first, otherHeader, prefix = '', separator, encoding, takesUrlForm, algorithm, timestamp } = scheme
  const name = otherHeader !== undefined && header(request, first) === undefined ? otherHeader : first
  const value = header(request, name)
  if (!value) return invalid(`${name} is missing`)
  const items = separator === undefined ? [value] : value.split(separator, ITEMS_MAX + 1).map((item) => item.trim())
  if (items.length > ITEMS_MAX) return invalid(`${name} has more than ${ITEMS_MAX} items`)
  const isForm = (item: string) => LABELLED.test(item) || (prefix === '' && BARE.test(item))
  if (separator !== undefined && !items.every(isForm)) return invalid(`${name} is malformed`, true)
  const signatures = items.filter((item) => item.startsWith(prefix))
  if (signatures.length === 0) return invalid(`${name} does not begin with ${prefix}`, true)
  const time = timestampOf(scheme, request, items)
  if (time !== undefined && !isTimely(time, request, windowSecs)) return invalid(`the timestamp is not within ${windowSecs} s`)
  const parts = signedParts(scheme, request, time)
  if (!parts) return invalid(`${scheme.idHeaders?.[0]} is missing`)
  const encodingOf = (item: string) => (takesUrlForm && !/=$|[+/]/.test(item.slice(prefix.length)) ? 'base64url' : encoding)
  const matches = (secret: string) => {
    const key = keyOf(scheme, secret)
    return key !== undefined && signatures.some((item) => verifyHmac(key, parts, item, { prefix, encoding: encodingOf(item), algorithm }))
  }
  const secret = secrets.find(matches)
  if (secret === undefined) {
    const isKey = secrets.some((known) => keyOf(scheme, known) !== undefined)
    return isKey ? invalid(`${name} does not match the request`, true) : invalid('the secret is no base64 text such as whsec_…')
  }
  if (timestamp && 'member' in timestamp && !isTimely(String(memberOf(request.body, timestamp.member)), request, windowSecs)) {
    return invalid(`${timestamp.member} in the body is not within ${windowSecs} s`)
  }
  // A signed time makes each delivery unique, so the signature itself tells a repeat.
  const digest = timestamp && hmac(algorithm, keyOf(scheme, secret) ?? '', ...parts).toString('hex')
  return valid(deliveryIdOf(scheme, request) ?? digest)
}

/** Returns the time in a header; empty if it is missing, undefined if the scheme has none there. */
function timestampOf({ timestamp }: HmacScheme, request: SignedRequest, items: readonly string[]): string | undefined {
  if (!timestamp || 'member' in timestamp) return undefined
  if ('header' in timestamp) return header(request, timestamp.header) ?? ''
  const found = items.filter((item) => item.startsWith(timestamp.item))
  return found.length === 1 ? (found[0] ?? '').slice(timestamp.item.length) : ''
}

function isTimely(time: string, { receivedAtMs }: SignedRequest, windowSecs: number): boolean {
  if (ISO_TIME.test(time)) return isFresh(Date.parse(time) / 1000, receivedAtMs, windowSecs)
  if (!/^\d{1,13}$/.test(time)) return false
  return isFresh(time.length > SECONDS_DIGITS_MAX ? Number(time) / 1000 : Number(time), receivedAtMs, windowSecs)
}

/** Returns the signed parts in order; undefined if the request lacks one. */
function signedParts({ payload, idHeaders = [] }: HmacScheme, request: SignedRequest, time = ''): Bytes[] | undefined {
  // Most schemes sign the body alone.
  if (payload === '{body}') return [request.body]
  const id = header(request, idHeaders[0] ?? '')
  if (payload.includes('{id}') && !id) return undefined
  return payload.split(/(\{[a-z]+\})/).map((part) => {
    switch (part) {
      case '{body}':
        return request.body
      case '{timestamp}':
        return time
      case '{id}':
        return id ?? ''
      case '{url}':
        return request.url
      case '{form}':
        return sortedForm(request.body)
      default:
        return part
    }
  })
}

/** Names and values of a form without separators, sorted; a repeated value counts once. Too many fields give no valid signature. */
function sortedForm(body: Uint8Array): string {
  const fields = new Map<string, Set<string>>()
  for (const [name, value] of new URLSearchParams(textOf(body))) {
    fields.set(name, (fields.get(name) ?? new Set()).add(value))
    if (fields.size > FORM_FIELDS_MAX) return '\0'
  }
  const names = [...fields.keys()].sort()
  return names.flatMap((name) => [...(fields.get(name) ?? [])].sort().map((value) => name + value)).join('')
}

function keyOf({ key }: HmacScheme, secret: string): Bytes | undefined {
  if (key !== 'base64') return secret
  const encoded = secret.trim().replace(/^whsec_/, '')
  return /^[A-Za-z0-9+/]+={0,2}$/.test(encoded) ? Buffer.from(encoded, 'base64') : undefined
}

function deliveryIdOf({ idHeaders = [], idMember }: WebhookScheme, request: SignedRequest): string | undefined {
  if (idHeaders.length === 0 && idMember === undefined) return undefined
  const named = idHeaders.map((name) => header(request, name)).find((value) => value)
  const id = named ?? (idMember === undefined ? undefined : memberOf(request.body, idMember))
  return typeof id === 'string' && id !== '' && id.length <= ID_CHARS_MAX ? id : undefined
}

/** Returns a member of the JSON body, by its path with dots. */
function memberOf(body: Uint8Array, path: string): unknown {
  try {
    let value: unknown = JSON.parse(textOf(body))
    for (const name of path.split('.')) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
      value = (value as Readonly<Record<string, unknown>>)[name]
    }
    return value
  } catch {
    return undefined
  }
}

const textOf = (body: Uint8Array): string => Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()

function header({ headers }: SignedRequest, name: string): string | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined
  return typeof value === 'string' ? value.trim() : undefined
}

/** The request to sign: `id` is the id of the delivery, and `atMs` the time that is signed. */
export interface RequestToSign {
  readonly url: string
  readonly body: string | Uint8Array
  readonly id: string
  readonly atMs: number
}

/**
 * Returns the headers and the query parameters that prove the sender of a request. The times and ids that a scheme reads from the
 * body must be in it.
 */
export function signProof(
  scheme: WebhookScheme,
  secret: string,
  { url, body, id, atMs }: RequestToSign,
): { readonly headers: Readonly<Record<string, string>>; readonly query: Readonly<Record<string, string>> } {
  const ids = scheme.idHeaders?.[0] === undefined ? {} : { [scheme.idHeaders[0]]: id }
  if (scheme.kind === 'query') return { headers: ids, query: { [scheme.parameter]: secret } }
  if (scheme.kind !== 'hmac') {
    const name = scheme.kind === 'basic' ? 'authorization' : scheme.header
    return { headers: { ...ids, [name]: tokenFor(scheme, secret) }, query: {} }
  }
  const { algorithm, encoding, prefix = '', separator = '', timestamp } = scheme
  const time = String(Math.floor(atMs / 1000))
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const parts = signedParts(scheme, { headers: ids, url, body: bytes, receivedAtMs: atMs }, time) ?? []
  const signature = prefix + hmac(algorithm, keyOf(scheme, secret) ?? '', ...parts).toString(encoding)
  const item = timestamp && 'item' in timestamp ? timestamp.item + time + separator : ''
  const times = timestamp && 'header' in timestamp ? { [timestamp.header]: time } : {}
  return { headers: { ...ids, ...times, [scheme.header]: item + signature }, query: {} }
}
