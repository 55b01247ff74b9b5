/** textrelay: the platform's own headers and the Standard Webhooks headers, each with a timestamp valid for 300 s. */
import { hmacSha256, sha256Hex } from '@sluice/sdk'
import { forgeMac } from '@sluice/testkit/webhook-fuzz/forge-mac'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import type { Random } from '@sluice/testkit/webhook-fuzz/random'
import type { WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { validBodies } from '@sluice/testkit/webhook-fuzz/valid-bodies'
import feature from '../index.ts'

const SECRET = 'textrelay-signing-secret-01'
const STANDARD_SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const STANDARD_KEY = Buffer.from(STANDARD_SECRET.slice('whsec_'.length), 'base64')
const WINDOW_MS = 300_000

const open = (secret: string) => openWebhook(feature, { api_token: 'api-token', from_phone: '+15550001111', signing_secret: secret })

const isFresh = (time: string, { atMs }: WebhookRequest): boolean => Math.abs(atMs - Number(time) * 1000) <= WINDOW_MS
const secondsOf = (atMs: number): string => String(Math.floor(atMs / 1000))

/** The prefix `sha256=` is optional. */
function legacyProofs(request: WebhookRequest): string[] {
  const { headers, body } = request
  const time = headers['x-webhook-timestamp']?.trim() ?? ''
  const signature = headers['x-webhook-signature']?.trim() ?? ''
  const digits = signature.startsWith('sha256=') ? signature.slice('sha256='.length) : signature
  return isFresh(time, request) ? [`legacy ${time} ${digits.toLowerCase()} ${sha256Hex(body)}`] : []
}

/** One valid signature among several is enough. */
function standardProofs(request: WebhookRequest): string[] {
  const { headers, body } = request
  const [id, time, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headers[name]?.trim() ?? '')
  if (!isFresh(time ?? '', request)) return []
  const digest = sha256Hex(body)
  return (signatures ?? '').split(' ').map((entry) => JSON.stringify([id, time, entry, digest]))
}

export function legacyScheme(random: Random): Scheme {
  const { webhook } = open(SECRET)
  return {
    count: 1_000_000,
    webhook,
    coversBody: true,
    isTimed: true,
    valid: validBodies(webhook, random).map(({ body, atMs }) => {
      const time = secondsOf(atMs)
      const signature = (random.chance(0.3) ? 'sha256=' : '') + hmacSha256(SECRET, time, '.', body).toString('hex')
      return { headers: { 'x-webhook-timestamp': time, 'x-webhook-signature': signature }, query: '', body, atMs }
    }),
    forge(request, random) {
      const parts = [request.headers['x-webhook-timestamp'] ?? '', '.', request.body]
      const mac = forgeMac({ secret: SECRET, parts }, random).toString('hex')
      return { ...request, headers: { ...request.headers, 'x-webhook-signature': mac } }
    },
    proofs: legacyProofs,
  }
}

export function standardScheme(random: Random): Scheme {
  const { webhook } = open(STANDARD_SECRET)
  const sign = (id: string, time: string, body: Uint8Array) => `v1,${hmacSha256(STANDARD_KEY, id, '.', time, '.', body).toString('base64')}`
  return {
    count: 1_000_000,
    webhook,
    coversBody: true,
    isTimed: true,
    valid: validBodies(webhook, random).map(({ id, body, atMs }) => {
      const time = secondsOf(atMs)
      const signature = (random.chance(0.2) ? 'v1,AAAA ' : '') + sign(id, time, body)
      const legacy = hmacSha256(STANDARD_SECRET, time, '.', body).toString('hex')
      return {
        headers: {
          'webhook-id': id,
          'webhook-timestamp': time,
          'webhook-signature': signature,
          // The real platform sends both.
          ...(random.chance(0.2) && { 'x-webhook-timestamp': time, 'x-webhook-signature': legacy }),
        },
        query: '',
        body,
        atMs,
      }
    }),
    forge(request, random) {
      const { 'webhook-id': id = '', 'webhook-timestamp': time = '', ...others } = request.headers
      const { 'x-webhook-timestamp': _time, 'x-webhook-signature': _signature, ...rest } = others
      // An attacker must not be able to move the dots between the parts.
      if (random.chance(0.1)) return { ...request, headers: { ...rest, 'webhook-id': `${id}.${time}`, 'webhook-timestamp': time } }
      const parts = [id, '.', time, '.', request.body]
      // Uses the text of the secret as the key, as the other scheme does.
      const mac = random.chance(0.1) ? hmacSha256(STANDARD_SECRET, ...parts) : forgeMac({ secret: STANDARD_KEY, parts }, random)
      const signature = random.pick(['v1,', 'v1,', 'v1,', 'v2,', 'v1a,', '']) + mac.toString(random.pick(['base64', 'base64', 'hex']))
      return { ...request, headers: { ...rest, 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature } }
    },
    proofs: (request) => [...standardProofs(request), ...legacyProofs(request)],
  }
}
