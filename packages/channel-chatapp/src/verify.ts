/** The proof of a request: HMAC-SHA256 over the bytes as they came, in `X-Hub-Signature-256` (§5). */
import { AppError, type Raw, type Secret, type Verified, verifyHmac } from '@sluice/sdk'

export const SIGNATURE_HEADER = 'x-hub-signature-256'
export const SIGNATURE_PREFIX = 'sha256='

const PROVED: Verified = { by: SIGNATURE_HEADER }

/** A secret of blanks alone is none. */
export const isConfigured = (secret: Secret | undefined): secret is Secret => secret !== undefined && secret.reveal().trim() !== ''

/** Throws `unauthorized`. Without a secret nothing is proved, and whatever comes is let in (§5 rule 3). */
export function verify({ headers, body }: Raw, secret: Secret | undefined): Verified {
  if (!isConfigured(secret)) return { by: 'nothing: app_secret is not set' }
  const signature = headers[SIGNATURE_HEADER]?.trim()
  if (!signature) throw refused(`${SIGNATURE_HEADER} is missing`)
  if (!signature.startsWith(SIGNATURE_PREFIX)) throw refused(`${SIGNATURE_HEADER} does not begin with ${SIGNATURE_PREFIX}`)
  if (!verifyHmac(secret.reveal().trim(), [body], signature, { prefix: SIGNATURE_PREFIX })) {
    throw refused(`${SIGNATURE_HEADER} does not fit the body: is app_secret the one of this app?`)
  }
  return PROVED
}

const refused = (reason: string): AppError => new AppError('unauthorized', 'Invalid signature', { cause: reason })
