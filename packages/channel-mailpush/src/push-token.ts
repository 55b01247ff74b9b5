/** Checks the signed tokens (OpenID Connect, RS256) of the push service with its public keys. Makes no request by itself. */
import { AppError } from '@sluice/sdk/webhook'
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose'

/** Google signs with either form, and its own libraries accept both. */
const ISSUERS = ['https://accounts.google.com', 'accounts.google.com']
/** How far the clocks of the push service and of this machine may differ. */
const CLOCK_SKEW_SECS = 300
const KEYS_MAX_AGE_MS = 3_600_000
/** How long the keys must be known before an unknown key id fetches them again. A forger can invent any number of key ids. */
const UNKNOWN_KEY_MS = 300_000
/** How long to wait after a failed fetch. */
const RETRY_MS = 10_000

export interface PushTokenOptions {
  /** The URL of the push subscription. */
  readonly audience: string
  /** The address of the service account that the subscription uses. */
  readonly email: string
  /** Fetches the public keys of the push service, a JSON Web Key Set as parsed JSON. The result is kept for an hour. */
  fetchKeys(): Promise<unknown>
  /** The current time in milliseconds since 1970. */
  nowMs(): number
}

/** Resolves to the problem of a token, without quoting the token; undefined for a valid one. */
export type CheckPushToken = (token: string) => Promise<string | undefined>

/** Returns a check that fetches the keys with the first token. */
export function createPushTokenCheck(options: PushTokenOptions): CheckPushToken {
  const { audience, email } = options
  const keys = new SigningKeys(options)
  return async (token) => {
    const { errors, jwtVerify } = await import('jose')
    try {
      const { payload } = await jwtVerify(token, keys.find, {
        algorithms: ['RS256'],
        issuer: ISSUERS,
        audience,
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_SKEW_SECS,
        currentDate: new Date(options.nowMs()),
      })
      if (payload.email !== email || payload.email_verified !== true) return 'the token belongs to another account than service_account'
      return undefined
    } catch (error) {
      if (error instanceof errors.JOSEError) return `the token is not valid: ${error.message}`
      return `the token could not be checked: ${error instanceof AppError ? error.message : 'unknown failure'}`
    }
  }
}

/** The public keys at a URL. They are fetched when needed, for all callers at once, and kept while the key server fails. */
class SigningKeys {
  readonly #options: PushTokenOptions
  #known: { readonly find: JWTVerifyGetKey; readonly atMs: number } | undefined
  #failed: { readonly error: unknown; readonly atMs: number } | undefined
  #fetching: Promise<void> | undefined

  constructor(options: PushTokenOptions) {
    this.#options = options
  }

  /** Finds the key of a token. Throws an error of `jose` when no key matches, and `AppError` when the keys cannot be fetched. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    if (this.#ageMs(this.#known) >= KEYS_MAX_AGE_MS) await this.#refresh()
    if (!this.#known) throw this.#failed?.error
    const { errors } = await import('jose')
    try {
      return await this.#known.find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || this.#ageMs(this.#known) < UNKNOWN_KEY_MS) throw error
      await this.#refresh()
      return this.#known.find(header, token)
    }
  }

  async #refresh(): Promise<void> {
    if (this.#ageMs(this.#failed) < RETRY_MS) return
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined
    })
    await this.#fetching
  }

  /** Never rejects; `#failed` has the error. */
  async #fetch(): Promise<void> {
    const { fetchKeys, nowMs } = this.#options
    try {
      const { createLocalJWKSet } = await import('jose')
      this.#known = { find: createLocalJWKSet((await fetchKeys()) as JSONWebKeySet), atMs: nowMs() }
      this.#failed = undefined
    } catch (error) {
      this.#failed = { error, atMs: nowMs() }
    }
  }

  #ageMs(event: { readonly atMs: number } | undefined): number {
    return event ? this.#options.nowMs() - event.atMs : Number.POSITIVE_INFINITY
  }
}
