/** The checks before the body of `POST /webhook` and of every path that a trigger names. */

import { WEBHOOK_PATH } from '@sluice/runtime'
import { AppError, equalDigests, type Lockout, sha256Hex } from '@sluice/sdk'
import { checkLockout } from '../auth/lockout.ts'
import { BODY_BYTES_MAX } from '../request/body.ts'
import { headersOf, type Step } from '../request/context.ts'
import type { AppParts } from '../server/app-parts.ts'
import { authenticate } from './authenticate.ts'
import { limitDeclaredSize } from './body.ts'
import { sameOrigin } from './origin.ts'
import { rateLimit } from './rate-limit.ts'

/** The order is part of the contract: the first check that fails answers. */
export const webhookAdmission = (parts: AppParts): Step[] => [
  limitDeclaredSize(BODY_BYTES_MAX),
  sameOrigin(parts.snapshot.gateway),
  limitCaller(parts),
  ...admitCaller(parts),
]

/** The rate limit that all these paths share. */
export const limitCaller = ({ snapshot, limits }: AppParts): Step => rateLimit(limits.webhook(snapshot.gateway), WEBHOOK_PATH, snapshot)

/** The credentials of `POST /webhook`: a bearer token, and the secret of `[gateway] webhook_secret`. */
export function admitCaller(parts: AppParts): Step[] {
  const { webhook_secret, webhook_secret_sha256 } = parts.snapshot.gateway
  const digest = webhook_secret ? sha256Hex(webhook_secret.reveal().trim()) : webhook_secret_sha256
  return [authenticate('client', parts), ...(digest ? [requireSecret(Buffer.from(digest, 'hex'), parts.auth.lockout)] : [])]
}

/**
 * Refuses a request without the secret of `[gateway] webhook_secret`. A wrong secret counts for the lockout of the address.
 * `digest` is the SHA-256 of the configured secret.
 */
function requireSecret(digest: Buffer, lockout: Lockout): Step {
  return async (c, next) => {
    const { address, spared, operator } = c.get('peer')
    if (operator !== undefined) return next()
    const given = headersOf(c).get('x-webhook-secret')
    if (given !== null && equalDigests(Buffer.from(sha256Hex(given.trim()), 'hex'), digest)) return next()
    if (!spared) await checkLockout(lockout, address)
    if (given !== null && !spared) await lockout.fail(address)
    throw new AppError('unauthorized', 'Unauthorized: the X-Webhook-Secret header is missing or wrong')
  }
}
