/** The meaning of the machine-readable prefix of a relay's refusal (NIP-01 and NIP-42). */
import { AppError, type ErrorCode } from '@sluice/sdk'

const CODES: Readonly<Record<string, ErrorCode>> = {
  'rate-limited': 'rate_limited',
  restricted: 'forbidden',
  'auth-required': 'forbidden',
  blocked: 'forbidden',
  mute: 'forbidden',
  pow: 'forbidden',
  invalid: 'invalid_request',
  unsupported: 'forbidden',
  error: 'unavailable',
}
/** Relays name no time. */
const RATE_LIMITED_SECS = 60
const REASON_CHARS_MAX = 200

/** Returns the error for a refusal of a relay. A refusal without a known prefix counts as temporary. */
export function refusal(relay: string, reason: string): AppError {
  const [prefix = ''] = reason.split(':', 1)
  const code = CODES[prefix.toLowerCase()] ?? 'unavailable'
  const shown = reason.replace(/\p{Cc}/gu, ' ').slice(0, REASON_CHARS_MAX) || 'no reason given'
  return new AppError(code, `${relay} refused: ${shown}`, { ...(code === 'rate_limited' && { retryAfterSecs: RATE_LIMITED_SECS }) })
}
