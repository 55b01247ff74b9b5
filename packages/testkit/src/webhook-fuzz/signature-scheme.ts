/** Platforms that sign their requests as a `HmacScheme` describes. Signatures are made here again, so that the suite repeats no fault of the product. */
import { createHmac } from 'node:crypto'
import { type HmacScheme, sha256Hex, type Webhook } from '@sluice/sdk'
import type { Random } from '../random.ts'
import { forgeMac, type Part } from './forge-mac.ts'
import type { WebhookRequest } from './request.ts'
import type { Scheme } from './scheme.ts'
import { validBodies } from './valid-bodies.ts'

export interface Signature {
  readonly scheme: HmacScheme
  readonly secret: string
  /** The text that the platform may write before each signature or leave out. */
  readonly optionalPrefix?: string
}

const WINDOW_MS = 300_000

const trimmed = ({ headers }: WebhookRequest, name: string): string => headers[name]?.trim() ?? ''

/** The time that a request claims, in milliseconds; undefined without one. */
function claimedMs({ timestamp, header, separator = ',' }: HmacScheme, request: WebhookRequest): number | undefined {
  if (!timestamp) return undefined
  if ('header' in timestamp) return Number(trimmed(request, timestamp.header)) * 1000
  if ('member' in timestamp) return Number((JSON.parse(Buffer.from(request.body).toString()) as Record<string, unknown>)[timestamp.member])
  const items = trimmed(request, header).split(separator)
  return (
    Number(
      items
        .find((item) => item.trim().startsWith(timestamp.item))
        ?.trim()
        .slice(timestamp.item.length),
    ) * 1000
  )
}

function signedParts(scheme: HmacScheme, request: WebhookRequest, time: string): Part[] {
  const id = trimmed(request, scheme.idHeaders?.[0] ?? '')
  const known: Readonly<Record<string, Part>> = { '{body}': request.body, '{timestamp}': time, '{id}': id }
  return scheme.payload.split(/(\{[a-z]+\})/).flatMap((part) => (part === '' ? [] : [known[part] ?? part]))
}

const keyOf = ({ scheme, secret }: Signature): string | Buffer =>
  scheme.key === 'base64' ? Buffer.from(secret.replace(/^whsec_/, ''), 'base64') : secret

function macOf({ algorithm }: HmacScheme, key: string | Buffer, parts: readonly Part[]): Buffer {
  const mac = createHmac(algorithm, key)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/** The body, and perhaps a time and an id, are signed as `signature` says. */
export function signatureScheme(webhook: Webhook, signature: Signature, random: Random): Scheme {
  const { scheme, optionalPrefix = '' } = signature
  const { prefix = '', separator = '', encoding, timestamp } = scheme
  const withSignature = (request: WebhookRequest, mac: Buffer, time: string, written = prefix): WebhookRequest => {
    const item = timestamp && 'item' in timestamp ? timestamp.item + time + separator : ''
    return { ...request, headers: { ...request.headers, [scheme.header]: item + written + mac.toString(encoding) } }
  }
  const timeIn = (request: WebhookRequest) => String(Math.floor((claimedMs(scheme, request) ?? 0) / 1000))
  return {
    count: 1_000_000,
    webhook,
    coversBody: true,
    isTimed: timestamp !== undefined,
    valid: validBodies(webhook, random).map(({ id, body, atMs }) => {
      const time = String(Math.floor(atMs / 1000))
      const headers = {
        ...(scheme.idHeaders?.[0] && { [scheme.idHeaders[0]]: id }),
        ...(timestamp && 'header' in timestamp && { [timestamp.header]: time }),
      }
      const request = { headers, query: '', body, atMs }
      const mac = macOf(scheme, keyOf(signature), signedParts(scheme, request, time))
      return withSignature(request, mac, time, random.chance(0.3) ? optionalPrefix + prefix : prefix)
    }),
    forge(request, random) {
      const time = claimedText(() => timeIn(request))
      const [idHeader = ''] = scheme.idHeaders ?? []
      // An attacker must not be able to move the dots between the parts.
      if (scheme.payload.includes('{id}') && random.chance(0.1)) {
        return { ...request, headers: { ...request.headers, [idHeader]: `${trimmed(request, idHeader)}.${time}` } }
      }
      const parts = signedParts(scheme, request, time)
      const key = keyOf(signature)
      // The text of a secret is not the key that it encodes.
      const isTextKey = typeof key !== 'string' && random.chance(0.1)
      return withSignature(request, isTextKey ? macOf(scheme, signature.secret, parts) : forgeMac({ secret: key, parts }, random), time)
    },
    proofs(request) {
      const claimed = Number(claimedText(() => String(claimedMs(scheme, request) ?? request.atMs)))
      if (!(Math.abs(request.atMs - claimed) <= WINDOW_MS)) return []
      const id = scheme.payload.includes('{id}') ? trimmed(request, scheme.idHeaders?.[0] ?? '') : ''
      const time = timestamp && !('member' in timestamp) ? claimed : ''
      const items = separator === '' ? [trimmed(request, scheme.header)] : trimmed(request, scheme.header).split(separator)
      const written = items.map((item) => withoutPrefix(item.trim(), optionalPrefix)).filter((item) => item.startsWith(prefix))
      const forms = written.map((item) => (encoding === 'hex' ? item.slice(prefix.length).toLowerCase() : item.slice(prefix.length)))
      return forms.map((form) => JSON.stringify([form, id, time, sha256Hex(request.body)]))
    },
  }
}

const withoutPrefix = (text: string, prefix: string): string => (text.startsWith(prefix) ? text.slice(prefix.length) : text)

/** Mutated bodies need not be JSON. */
function claimedText(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
