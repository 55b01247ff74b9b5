/** What stands before `POST /webhook` and every path a procedure listens on: limits, credentials, idempotency (§2.2, §5). */

import type { HeaderReader, Live, Runtime } from '@sluice/runtime'
import { WEBHOOK_PATH } from '@sluice/runtime'
import { AppError, equalDigests, type IdempotencyKey, sha256Hex } from '@sluice/sdk'
import type { Auth } from './auth.ts'
import type { EndpointDoc } from './endpoint.ts'
import type { Caller, Gate, HttpContext, Peer } from './gate.ts'
import { headersOf } from './headers-of.ts'
import { limitRate } from './limit-rate.ts'
import type { RateLimiter } from './rate-limiter.ts'
import { BODY_BYTES_MAX, checkDeclaredSize, readBody } from './raw-body.ts'
import { JSON_HEADERS } from './security-headers.ts'

const DONE = { status: 'duplicate', idempotent: true, message: 'Request already processed for this idempotency key' } as const
const IN_FLIGHT = { ...DONE, message: 'A request with this idempotency key is being processed', state: 'in_flight' } as const
const DUPLICATE = { done: JSON.stringify(DONE), in_flight: JSON.stringify(IN_FLIGHT) }

/** For the OpenAPI document. */
export const GUARD_HEADERS: NonNullable<EndpointDoc['headers']> = {
  'X-Webhook-Secret': 'The shared secret, where one is configured',
  'X-Idempotency-Key': '1 to 255 visible ASCII characters; a repeat within the time to live runs nothing and is answered with `X-Turn-Id`',
}

export interface WebhookOptions {
  readonly runtime: Runtime
  readonly live: Live
  readonly gate: Gate
  readonly auth: Auth
  readonly limiter: RateLimiter
}

export interface WebhookCaller extends Caller {
  readonly headers: HeaderReader
}

export interface WebhookGuard {
  /** Declared size, rate limit, bearer, secret: in this order, the first that refuses throws. */
  admit(c: HttpContext): Promise<WebhookCaller>
  /** The body. Throws `unauthorized` if the token of the caller was revoked while the body was read. */
  readBody(c: HttpContext, caller: WebhookCaller): Promise<Uint8Array>
  /** The key of a request that is to be worked on, if it brings one; or the answer to a duplicate. */
  claim(caller: WebhookCaller, path: string): Promise<{ readonly idempotency?: IdempotencyKey } | Response>
}

export function createWebhookGuard({ runtime, live, gate, auth, limiter }: WebhookOptions): WebhookGuard {
  const { config } = live
  const secret = createSecretCheck(config.webhook_secret?.reveal(), auth)
  const claimLimits = { ttlMs: config.idempotency_ttl_secs * 1000, keysMax: config.idempotency_max_keys }
  return {
    async admit(c) {
      checkDeclaredSize(c, BODY_BYTES_MAX)
      const peer = gate.peer(c)
      const headers = headersOf(c)
      limitRate(limiter, peer.address, WEBHOOK_PATH, live)
      const caller = await gate.identify(c, peer)
      secret(headers, peer)
      return { ...caller, headers }
    },
    async readBody(c, caller) {
      const body = await readBody(c, BODY_BYTES_MAX)
      await gate.recheck(caller)
      return body
    },
    async claim({ headers, device }, path) {
      const idempotency = keyOf(headers, device, path)
      if (!idempotency) return {}
      const claim = await runtime.store.idempotency.claim(idempotency, claimLimits)
      if (claim === 'claimed') return { idempotency }
      const turnId = await runtime.store.idempotency.turnOf(idempotency)
      if (turnId === undefined) return new Response(DUPLICATE[claim], { headers: JSON_HEADERS })
      if (claim === 'in_flight') await runtime.agent.ensureResumed(turnId)
      return new Response(DUPLICATE[claim], { headers: { ...JSON_HEADERS, 'X-Turn-Id': turnId } })
    },
  }
}

/** §5 rule 2: of the configured secret only its SHA-256 is kept. */
function createSecretCheck(secret: string | undefined, { lockout }: Auth): (headers: HeaderReader, peer: Peer) => void {
  if (!secret) return () => {}
  const digest = Buffer.from(sha256Hex(secret.trim()), 'hex')
  return (headers, { address, spared }) => {
    const given = headers.get('x-webhook-secret')
    if (given !== null && equalDigests(Buffer.from(sha256Hex(given.trim()), 'hex'), digest)) return
    if (!spared) lockout.check(address)
    if (given !== null && !spared) lockout.fail(address)
    throw new AppError('unauthorized', 'Unauthorized: the X-Webhook-Secret header is missing or wrong')
  }
}

function keyOf(headers: HeaderReader, device: string | null, path: string): IdempotencyKey | undefined {
  const key = headers.get('x-idempotency-key')?.trim()
  if (key === undefined) return undefined
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) throw new AppError('invalid_request', 'X-Idempotency-Key has 1 to 255 visible ASCII characters')
  return { scope: `${device ?? 'open'} ${path}`, key }
}
