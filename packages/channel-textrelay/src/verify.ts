/** Where a request comes from (§4.2, §8): the provider's own signature headers, or those of Standard Webhooks. */
import { AppError, isFresh, type Raw, type Verified, verifyHmac } from '@sluice/sdk'

/** In the past or the future. */
const WINDOW_SECS = 300
/** While a secret is changed over there are two. */
const SIGNATURES_MAX = 8

/** Both header sets come with every request: it is proved if either of them is right. */
export function verifySignature(raw: Raw, secret: string): Verified {
  const standard = standardProblem(raw, secret)
  if (standard === undefined) return { by: 'webhook-signature' }
  const legacy = legacyProblem(raw, secret)
  if (legacy === undefined) return { by: 'x-webhook-signature' }
  throw new AppError('unauthorized', 'Invalid signature', { cause: `${standard}; ${legacy}` })
}

/**
 * The times of a request that nothing signs: one that is given has to be within 300 s, so that an old request is not taken
 * again by mistake. It proves nothing, because a forger can leave it out.
 */
export function verifyTimes(raw: Raw): Verified {
  const stale = ['webhook-timestamp', 'x-webhook-timestamp'].find(
    (name) => raw.headers[name] !== undefined && !isTimely(header(raw, name), raw),
  )
  if (stale !== undefined) throw new AppError('unauthorized', 'Invalid signature', { cause: `${stale} is not within 300 s` })
  return { by: 'nothing: signing_secret is not set' }
}

/** The key in a secret of the form `whsec_<base64>`; Standard Webhooks knows no other. */
export function standardKey(secret: string): Uint8Array | undefined {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64')
}

function standardProblem(raw: Raw, secret: string): string | undefined {
  const key = standardKey(secret)
  if (!key) return 'webhook-signature: needs a signing secret that begins with whsec_'
  const [id, time, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => header(raw, name))
  if (!id || !time || !signatures) return 'webhook-signature: is missing, or its id or timestamp is'
  if (!isTimely(time, raw)) return 'webhook-signature: its timestamp is not within 300 s'
  const entries = signatures.split(' ')
  const isWellFormed = entries.length <= SIGNATURES_MAX && entries.every((entry) => /^v\d+[a-z]*,[A-Za-z0-9+/]+={0,2}$/.test(entry))
  const signed = [id, '.', time, '.', raw.body]
  const isRight = isWellFormed && entries.some((entry) => verifyHmac(key, signed, entry, { prefix: 'v1,', encoding: 'base64' }))
  return isRight ? undefined : 'webhook-signature: is wrong'
}

function legacyProblem(raw: Raw, secret: string): string | undefined {
  const [time, signature] = ['x-webhook-timestamp', 'x-webhook-signature'].map((name) => header(raw, name))
  if (!time || !signature) return 'x-webhook-signature: is missing, or its timestamp is'
  if (!isTimely(time, raw)) return 'x-webhook-signature: its timestamp is not within 300 s'
  const isRight = verifyHmac(secret, [time, '.', raw.body], signature.replace(/^sha256=/, ''))
  return isRight ? undefined : 'x-webhook-signature: is wrong'
}

const header = ({ headers }: Raw, name: string): string => headers[name]?.trim() ?? ''

const isTimely = (time: string, { receivedAtMs }: Raw): boolean => /^\d+$/.test(time) && isFresh(Number(time), receivedAtMs, WINDOW_SECS)
