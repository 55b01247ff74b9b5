/** Idempotency keys: a request with a known key runs nothing and is answered as a duplicate. */

import { AppError, type IdempotencyKey } from '@sluice/sdk'
import type { AppParts } from '../app-parts.ts'
import { type HttpContext, headersOf, type Step } from '../context.ts'
import { JSON_HEADERS } from '../respond.ts'

const DONE = { status: 'duplicate', idempotent: true, message: 'Request already processed for this idempotency key' } as const
const IN_FLIGHT = { ...DONE, message: 'A request with this idempotency key is being processed', state: 'in_flight' } as const
const DUPLICATE = { done: JSON.stringify(DONE), in_flight: JSON.stringify(IN_FLIGHT) }

/**
 * Claims the key of the request, if it has one, and sets `idempotency`; needs `caller`. The key belongs to the device and the
 * path. A duplicate of a turn is answered with `X-Turn-Id`, and a turn that was interrupted is resumed.
 */
export function idempotent({ runtime, snapshot }: AppParts): Step {
  const { store, agent } = runtime
  const { idempotency_ttl_secs, idempotency_max_keys } = snapshot.gateway
  const limits = { ttlMs: idempotency_ttl_secs * 1000, keysMax: idempotency_max_keys }
  return async (c, next) => {
    const key = keyOf(c)
    if (!key) return next()
    const claim = await store.idempotency.claim(key, limits)
    if (claim === 'claimed') {
      c.set('idempotency', key)
      return next()
    }
    const turnId = await store.idempotency.turnOf(key)
    if (turnId === undefined) return new Response(DUPLICATE[claim], { headers: JSON_HEADERS })
    if (claim === 'in_flight') await agent.ensureResumed(turnId)
    return new Response(DUPLICATE[claim], { headers: { ...JSON_HEADERS, 'X-Turn-Id': turnId } })
  }
}

function keyOf(c: HttpContext): IdempotencyKey | undefined {
  const key = headersOf(c).get('x-idempotency-key')?.trim()
  if (key === undefined) return undefined
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) throw new AppError('invalid_request', 'X-Idempotency-Key has 1 to 255 visible ASCII characters')
  return { scope: `${c.get('caller').device ?? 'open'} ${c.req.path}`, key }
}
