/** The schemes of the services that start procedures. Their signatures are made here again, so that the suite repeats no fault of the product. */
import { createHmac } from 'node:crypto'
import { AppError, type HmacScheme, SENDER_SCHEMES, sha256Hex, type Verified, verifyProof, type Webhook } from '@sluice/sdk'
import { forgeMac, otherSecret, type Part } from '@sluice/testkit/webhook-fuzz/forge-mac'
import type { Random } from '@sluice/testkit/webhook-fuzz/random'
import type { WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { validBodies } from '@sluice/testkit/webhook-fuzz/valid-bodies'

const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const WINDOW_MS = 300_000

/** A channel that takes the requests of a sender, as the fuzzer expects it. */
const webhookOf = (scheme: (typeof SENDER_SCHEMES)[keyof typeof SENDER_SCHEMES]): Webhook => ({
  path: '/in',
  verify({ headers, url, body, receivedAtMs }): Verified {
    const proof = verifyProof(scheme, [SECRET], { headers, url: url.href, body, receivedAtMs })
    if (!proof.isValid) throw new AppError('unauthorized', proof.reason)
    return { by: 'a proof' }
  },
  parse: () => [],
  sample: ({ id, text, atMs }) => ({
    headers: {},
    body: JSON.stringify({ id, event_id: id, event: { id }, webhookTimestamp: atMs, text }),
  }),
})

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

const keyOf = ({ key }: HmacScheme): string | Buffer => (key === 'base64' ? Buffer.from(SECRET.slice('whsec_'.length), 'base64') : SECRET)

function hmacScheme(scheme: HmacScheme, random: Random): Scheme {
  const webhook = webhookOf(scheme as never)
  const { prefix = '', separator = '', encoding, timestamp } = scheme
  const withSignature = (request: WebhookRequest, mac: Buffer, time: string): WebhookRequest => {
    const item = timestamp && 'item' in timestamp ? timestamp.item + time + separator : ''
    return { ...request, headers: { ...request.headers, [scheme.header]: item + prefix + mac.toString(encoding) } }
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
      const mac = createHmac(scheme.algorithm, keyOf(scheme))
      for (const part of signedParts(scheme, request, time)) mac.update(part)
      return withSignature(request, mac.digest(), time)
    }),
    forge(request, random) {
      const time = claimedText(() => timeIn(request))
      return withSignature(request, forgeMac({ secret: keyOf(scheme), parts: signedParts(scheme, request, time) }, random), time)
    },
    proofs(request) {
      const claimed = Number(claimedText(() => String(claimedMs(scheme, request) ?? request.atMs)))
      if (!(Math.abs(request.atMs - claimed) <= WINDOW_MS)) return []
      const id = scheme.payload.includes('{id}') ? trimmed(request, scheme.idHeaders?.[0] ?? '') : ''
      const time = timestamp && !('member' in timestamp) ? claimed : ''
      const items = separator === '' ? [trimmed(request, scheme.header)] : trimmed(request, scheme.header).split(separator)
      const signatures = items.map((item) => item.trim()).filter((item) => item.startsWith(prefix))
      const forms = signatures.map((item) => (encoding === 'hex' ? item.slice(prefix.length).toLowerCase() : item.slice(prefix.length)))
      return forms.map((form) => JSON.stringify([form, id, time, sha256Hex(request.body)]))
    },
  }
}

/** Mutated bodies need not be JSON. */
function claimedText(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}

function gitlabScheme(random: Random): Scheme {
  const webhook = webhookOf(SENDER_SCHEMES.gitlab)
  const { header } = SENDER_SCHEMES.gitlab
  return {
    count: 1_000_000,
    webhook,
    coversBody: false,
    isTimed: false,
    valid: validBodies(webhook, random).map(({ body, atMs }) => ({ headers: { [header]: SECRET }, query: '', body, atMs })),
    forge: (request, random) => ({ ...request, headers: { [header]: Buffer.from(otherSecret(SECRET, random)).toString('latin1') } }),
    proofs: (request) => [trimmed(request, header)],
  }
}

/** The scheme of Twilio has its own vectors only: many forms have one signed text. */
export const SENDER_FUZZ: readonly (readonly [name: string, make: (random: Random) => Scheme])[] = [
  ...Object.entries(SENDER_SCHEMES).flatMap(([name, scheme]) => {
    if (scheme.kind !== 'hmac' || name === 'twilio') return []
    return [[`sender-${name}`, (random: Random) => hmacScheme(scheme, random)] as const]
  }),
  ['sender-gitlab', gitlabScheme],
]
