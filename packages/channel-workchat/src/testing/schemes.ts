/** workchat: a hash over time, nonce, key and body, valid for 300 s, or a token inside of the body. */
import { createHash } from 'node:crypto'
import { sha256Hex } from '@sluice/sdk'
import type { Random } from '@sluice/testkit/random'
import { forgeMac, otherSecret, type Part } from '@sluice/testkit/webhook-fuzz/forge-mac'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import type { WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { bodyTokenScheme } from '@sluice/testkit/webhook-fuzz/shared-secret-scheme'
import { validBodies } from '@sluice/testkit/webhook-fuzz/valid-bodies'
import feature from '../index.ts'
import { WORKCHAT_ENCRYPT_KEY, WORKCHAT_VERIFICATION_TOKEN } from './fake.ts'
import { workchatSignature } from './signed.ts'

const WINDOW_SECS = 300
const SIGNATURE = 'x-lark-signature'
const TIME = 'x-lark-request-timestamp'
const NONCE = 'x-lark-request-nonce'

const open = (proof: object) =>
  openWebhook(feature, { app_id: 'cli_fuzz', app_secret: 'app-secret', receive_mode: 'webhook', ...proof }, () =>
    Promise.reject(new Error('no platform')),
  ).webhook

/** The hash over time, nonce, key and body. */
function hashOf(key: Part, [time = '', nonce = '', body = '']: readonly Part[]): string {
  return createHash('sha256').update(time).update(nonce).update(key).update(body).digest('hex')
}

const headerIn = ({ headers }: WebhookRequest, name: string): string => headers[name]?.trim() ?? ''

export function signatureScheme(random: Random): Scheme {
  const webhook = open({ encrypt_key: WORKCHAT_ENCRYPT_KEY })
  const secondsIn = (request: WebhookRequest): number => {
    const number = Number(headerIn(request, TIME))
    return number > 100_000_000_000 ? Math.floor(number / 1000) : number
  }
  return {
    count: 1_000_000,
    webhook,
    coversBody: true,
    isTimed: true,
    // The hash covers the time, the nonce and the key without a separator.
    hasMovableBytes: true,
    valid: validBodies(webhook, random).map(({ body, atMs, id }) => {
      const made = workchatSignature(body, { encryptKey: WORKCHAT_ENCRYPT_KEY, atMs, nonce: id })
      const headers = Object.fromEntries(Object.entries(made).map(([name, value]) => [name.toLowerCase(), value]))
      return { headers, query: '', body, atMs }
    }),
    forge(request, random) {
      const parts: readonly Part[] = [headerIn(request, TIME), headerIn(request, NONCE), request.body]
      const right = hashOf(WORKCHAT_ENCRYPT_KEY, parts)
      let made = right
      while (made === right) {
        made = random.chance(0.5)
          ? hashOf(otherSecret(WORKCHAT_ENCRYPT_KEY, random), parts)
          : forgeMac({ secret: WORKCHAT_ENCRYPT_KEY, parts }, random).toString('hex')
      }
      return { ...request, headers: { ...request.headers, [SIGNATURE]: made } }
    },
    proofs(request) {
      const time = headerIn(request, TIME)
      const isFresh = /^\d{1,15}$/.test(time) && Math.abs(Math.floor(request.atMs / 1000) - secondsIn(request)) <= WINDOW_SECS
      const nonce = headerIn(request, NONCE)
      if (!isFresh || nonce === '') return []
      return [JSON.stringify([headerIn(request, SIGNATURE).toLowerCase(), time + nonce, sha256Hex(request.body)])]
    },
  }
}

/** The token is the same in all requests, and nothing covers the rest of the body. */
export const tokenScheme = (random: Random): Scheme =>
  bodyTokenScheme(
    open({ verification_token: WORKCHAT_VERIFICATION_TOKEN }),
    WORKCHAT_VERIFICATION_TOKEN,
    (body) => (body as { readonly header?: { readonly token?: unknown } }).header?.token,
    random,
  )
