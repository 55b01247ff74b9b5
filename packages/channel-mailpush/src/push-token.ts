/** The signed identity of the provider's push service (OIDC): RS256 alone, made for our URL, of the configured account. */
import { AppError, type Host } from '@sluice/sdk'
import { createSigningKeys } from './signing-keys.ts'

/** Google signs with either form; its own libraries accept both. */
const ISSUERS = ['https://accounts.google.com', 'accounts.google.com']
/** How far the clocks of the push service and of this machine may differ. */
const CLOCK_SKEW_SECS = 300

export interface PushTokenOptions {
  /** The URL on the push subscription. */
  readonly audience: string
  readonly email: string
  readonly jwksUrl: string
}

/** Resolves to what is wrong with a token, in words without anything of it; undefined if it is good. */
export type CheckPushToken = (token: string) => Promise<string | undefined>

export function createPushTokenCheck(host: Host, { audience, email, jwksUrl }: PushTokenOptions): CheckPushToken {
  const keys = createSigningKeys(host, jwksUrl)
  return async (token) => {
    const { errors, jwtVerify } = await import('jose')
    try {
      const { payload } = await jwtVerify(token, keys.find, {
        algorithms: ['RS256'],
        issuer: ISSUERS,
        audience,
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_SKEW_SECS,
        currentDate: new Date(host.clock.nowMs()),
      })
      if (payload.email !== email || payload.email_verified !== true) return 'the token is not of service_account'
      return undefined
    } catch (error) {
      if (error instanceof errors.JOSEError) return `the token is not valid: ${error.message}`
      return `the token could not be checked: ${error instanceof AppError ? error.message : 'unknown failure'}`
    }
  }
}
