/** Idempotency keys: a request with a known key runs nothing and is answered as a duplicate. */

import { AppError, type Claim, type IdempotencyKey } from '@sluice/sdk'
import { headersOf, type Step } from '../request/context.ts'
import { JSON_HEADERS } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'

const DONE = { status: 'duplicate', idempotent: true, message: 'Request already processed for this idempotency key' } as const
const IN_FLIGHT = { ...DONE, message: 'A request with this idempotency key is being processed', state: 'in_flight' } as const
const DUPLICATE = { done: JSON.stringify(DONE), in_flight: JSON.stringify(IN_FLIGHT) }

/**
 * Claims the key of the request, if it has one, and sets `idempotency`; needs `caller`. The key belongs to the device and the
 * path. A duplicate of a turn is answered with `X-Turn-Id`, and a turn that was interrupted is resumed.
 */
export function idempotent(parts: AppParts): Step {
  return async (c, next) => {
    const key = keyIn(headersOf(c), c.get('caller').device, c.req.path)
    if (!key) return next()
    const claimed = await claimKey(parts, key)
    if (claimed.claim !== 'claimed') return duplicate(claimed.claim, claimed.turnId)
    c.set('idempotency', key)
    if (!parts.runtime.store.cluster) return next()
    await next()
    const again = c.error && (await lostKey(parts, key, c.error))
    if (!again || again.claim === 'claimed') return
    c.error = undefined
    // Without this, the headers of the refusal would stay.
    c.res = undefined
    c.res = duplicate(again.claim, again.turnId)
  }
}

const duplicate = (claim: 'done' | 'in_flight', turnId: string | undefined): Response =>
  new Response(DUPLICATE[claim], { headers: { ...JSON_HEADERS, ...(turnId !== undefined && { 'X-Turn-Id': turnId }) } })

/** Claims a key again that another node has used first; both had claimed it at once. Resolves to undefined for any other error. */
export async function lostKey(
  parts: Pick<AppParts, 'runtime' | 'snapshot'>,
  key: IdempotencyKey,
  error: unknown,
): Promise<ClaimedKey | undefined> {
  if (!parts.runtime.store.cluster || !(error instanceof AppError) || error.code !== 'conflict') return undefined
  const again = await claimKey(parts, key)
  if (again.claim === 'claimed') await parts.runtime.store.idempotency.release(key)
  return again
}

/** The result of a claim. `turnId` names the turn of the request that has the key, which is resumed if it was interrupted. */
export interface ClaimedKey {
  readonly claim: Claim
  readonly turnId?: string | undefined
}

/** Claims a key with the limits of `[gateway]`. */
export async function claimKey({ runtime, snapshot }: Pick<AppParts, 'runtime' | 'snapshot'>, key: IdempotencyKey): Promise<ClaimedKey> {
  const { store, agent } = runtime
  const { idempotency_ttl_secs, idempotency_max_keys } = snapshot.gateway
  const claim = await store.idempotency.claim(key, { ttlMs: idempotency_ttl_secs * 1000, keysMax: idempotency_max_keys })
  if (claim === 'claimed') return { claim }
  const turnId = await store.idempotency.turnOf(key)
  if (claim === 'in_flight' && turnId !== undefined) await agent.ensureResumed(turnId)
  return { claim, turnId }
}

/** Returns the key of a request of a device to a path; undefined without one. Throws `invalid_request` for a key that is not valid. */
export function keyIn(headers: Pick<Headers, 'get'>, device: string | null, path: string): IdempotencyKey | undefined {
  const key = headers.get('x-idempotency-key')?.trim()
  if (key === undefined) return undefined
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) throw new AppError('invalid_request', 'X-Idempotency-Key has 1 to 255 visible ASCII characters')
  return { scope: `${device ?? 'open'} ${path}`, key }
}
