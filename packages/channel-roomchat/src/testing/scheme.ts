/** roomchat: HMAC-SHA256 in hex over a random value and the body, in headers of two spellings. */
import { hmacSha256, sha256Hex } from '@sluice/sdk'
import type { Random } from '@sluice/testkit/random'
import { forgeMac } from '@sluice/testkit/webhook-fuzz/forge-mac'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import type { WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { validBodies } from '@sluice/testkit/webhook-fuzz/valid-bodies'
import feature from '../index.ts'

const SECRET = 'roomchat-webhook-secret-01'
const BASE_URL = 'https://cloud.example'
const RANDOM_CHARS_MIN = 32

export function roomchatScheme(random: Random): Scheme {
  const { webhook } = openWebhook(feature, { base_url: BASE_URL, app_token: 'app-token', webhook_secret: SECRET })
  const of = (request: WebhookRequest, part: string): string | undefined =>
    (request.headers[`x-roomchat-${part}`] ?? request.headers[`x-nextcloud-talk-${part}`])?.trim()
  const set = (request: WebhookRequest, changes: Readonly<Record<string, string>>): WebhookRequest => {
    const spelling = 'x-roomchat-random' in request.headers ? 'x-roomchat-' : 'x-nextcloud-talk-'
    const changed = Object.entries(changes).map(([part, value]) => [spelling + part, value])
    return { ...request, headers: { ...request.headers, ...Object.fromEntries(changed) } }
  }
  return {
    count: 1_000_000,
    webhook,
    coversBody: true,
    hasMovableBytes: true,
    isTimed: false,
    valid: validBodies(webhook, random).map(({ body, atMs }) => {
      const value = Buffer.from(random.bytes(48)).toString('base64')
      const spelling = random.pick(['x-roomchat-', 'x-nextcloud-talk-'])
      return {
        headers: {
          [`${spelling}random`]: value,
          [`${spelling}signature`]: hmacSha256(SECRET, value, body).toString('hex'),
          ...(random.chance(0.5) && { [`${spelling}backend`]: `${BASE_URL}/` }),
        },
        query: '',
        body,
        atMs,
      }
    }),
    forge(request, random) {
      const value = of(request, 'random') ?? ''
      if (random.chance(0.2)) {
        // Moves the end of the random value to the start of the body, so the signed bytes stay the same.
        const kept = RANDOM_CHARS_MIN + random.below(Math.max(1, value.length - RANDOM_CHARS_MIN))
        const body = Buffer.concat([Buffer.from(value.slice(kept)), request.body])
        return set({ ...request, body }, { random: value.slice(0, kept) })
      }
      if (random.chance(0.2)) {
        const moved = random.below(20)
        const body = request.body.subarray(moved)
        return set({ ...request, body }, { random: value + Buffer.from(request.body.subarray(0, moved)).toString('latin1') })
      }
      return set(request, { signature: forgeMac({ secret: SECRET, parts: [value, request.body] }, random).toString('hex') })
    },
    proofs(request) {
      const backend = of(request, 'backend')
      if (backend !== undefined && !isOurServer(backend)) return []
      const signature = of(request, 'signature') ?? ''
      const digits = signature.startsWith('sha256=') ? signature.slice('sha256='.length) : signature
      return [`${of(request, 'random')} ${digits.toLowerCase()} ${sha256Hex(request.body)}`]
    },
  }
}

/** Ignores case, a default port, trailing slashes, and everything after the path. */
function isOurServer(backend: string): boolean {
  const url = URL.parse(backend)
  return url !== null && url.origin === BASE_URL && /^\/*$/.test(url.pathname)
}
