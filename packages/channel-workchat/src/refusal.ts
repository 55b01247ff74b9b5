/** The platform's refusals: numbers in the body, with any status. They decide whether a request may be repeated, and when. */
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type ErrorCode, type ErrorOptions } from '@sluice/sdk'

export interface Refusal {
  readonly code: number
  readonly message: string
}

/** The tenant access token is missing, wrong, or not valid any more. */
const INVALID_TOKEN = new Set([99991661, 99991663, 99991664, 99991665, 99991668, 99991671, 99991677])

const CODES: Readonly<Record<number, ErrorCode>> = {
  // The app or a conversation exceeds a limit: of the gateway, of a conversation, of the tenant.
  99991400: 'rate_limited',
  230020: 'rate_limited',
  11232: 'rate_limited',
  11233: 'rate_limited',
  // Every call fails until the operator changes the app or its permissions.
  99991672: 'forbidden',
  99991679: 'forbidden',
  230006: 'forbidden',
  230027: 'forbidden',
  234007: 'forbidden',
  // The bot may not write there.
  230002: 'forbidden',
  230013: 'forbidden',
  230018: 'forbidden',
  230035: 'forbidden',
  230053: 'forbidden',
  // A message with the same uuid is being sent at this moment, or the platform failed.
  230049: 'upstream',
  1663: 'upstream',
  2200: 'upstream',
  5000: 'upstream',
  55001: 'upstream',
}

/** The message that a reply quotes was recalled or deleted. */
const GONE = new Set([230011, 230110])
/** The platform cannot make a card of this content. */
const CARD = new Set([230099, 230025, 200621, 200672, 11310])

export const isInvalidToken = (refusal: Refusal | undefined): boolean => refusal !== undefined && INVALID_TOKEN.has(refusal.code)

/** Returns the refusal in an answer; undefined for a success, and for an answer of another form. */
export function refusalIn(json: unknown): Refusal | undefined {
  const { code, msg } = members(json)
  return typeof code === 'number' && code !== 0 ? { code, message: text(msg).slice(0, 200) } : undefined
}

/** An error with the platform's number. */
export class RefusedError extends AppError {
  readonly refusal: Refusal

  constructor(
    what: string,
    refusal: Refusal,
    { retryAfterSecs, mayHaveArrived = false }: Pick<ErrorOptions, 'retryAfterSecs' | 'mayHaveArrived'>,
  ) {
    const code = isInvalidToken(refusal) ? 'unavailable' : (CODES[refusal.code] ?? 'invalid_request')
    const hint = code === 'forbidden' ? ' (does the app have the permission, and is its version published?)' : ''
    const options = { mayHaveArrived, ...(retryAfterSecs !== undefined && { retryAfterSecs }) }
    super(code, `workchat answered ${refusal.code} to ${what}: ${refusal.message}${hint}`, options)
    this.refusal = refusal
  }
}

export const isGone = (error: unknown): boolean => error instanceof RefusedError && GONE.has(error.refusal.code)
export const isBadCard = (error: unknown): boolean => error instanceof RefusedError && CARD.has(error.refusal.code)
