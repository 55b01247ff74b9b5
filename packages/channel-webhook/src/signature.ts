/** The two ways in which messages and replies are signed; the form of the secret decides. */
import { bodyHmac, type HmacScheme, SENDER_SCHEMES } from '@sluice/sdk/webhook'

const PLAIN = bodyHmac('x-webhook-signature', { prefix: 'sha256=' })

/**
 * Returns Standard Webhooks for a secret that begins with `whsec_`, see standardwebhooks.com. Any other text signs the body alone:
 * HMAC-SHA256 in hex, in `X-Webhook-Signature: sha256=…`.
 */
export const schemeOf = (secret: string): HmacScheme => (secret.startsWith('whsec_') ? SENDER_SCHEMES['standard-webhooks'] : PLAIN)
