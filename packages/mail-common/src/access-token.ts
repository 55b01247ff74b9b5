/** The OAuth access token of a mail service: the configured one, or tokens that a refresh token gets (RFC 6749, section 6). */
import { callProvider, untilAborted } from '@sluice/kit'
import { AppError, errorText, type Host, Secret } from '@sluice/sdk'
import * as v from 'valibot'

export interface AccessTokenOptions {
  readonly host: Pick<Host, 'fetch' | 'clock'>
  /** The name of the service for error texts, such as the one of the channel. */
  readonly service: string
  /** A token that the operator configured. */
  readonly token?: Secret | undefined
  readonly tokenUrl: string
  /** What an error about a missing token asks the operator to set. */
  readonly missing: string
  /** Returns the form of a token request; undefined if the configuration has no refresh token. */
  form(): Promise<URLSearchParams | undefined> | URLSearchParams | undefined
  /** Called with the refresh token that replaces the one of the request, where the service changes it. */
  onRefreshToken?(token: string): Promise<void>
}

interface HeldToken {
  readonly token: Secret
  readonly expiresAtMs: number
}

/** A token is renewed this long before it expires, because the request with it takes time as well. */
const MARGIN_MS = 60_000

const grantSchema = v.object({
  access_token: v.pipe(v.string(), v.minLength(1)),
  expires_in: v.optional(v.pipe(v.number(), v.minValue(1)), 3600),
  refresh_token: v.optional(v.pipe(v.string(), v.minLength(1))),
})
const refusalSchema = v.object({ error: v.string(), error_description: v.optional(v.string()) })

/** The cause of an error that only another token resolves. */
const REFUSED = 'only the operator can set another token'

/** Whether an error of this module, or one made by `tokenRefused`, means that only the operator can help. */
export const isTokenRefused = (error: unknown): boolean => error instanceof AppError && error.cause === REFUSED

/** The error for a token that the service does not accept and that cannot be renewed. */
export const tokenRefused = (detail: string): AppError => new AppError('unavailable', detail, { cause: REFUSED })

/** Both methods throw `unavailable` when no token can be obtained. */
export class AccessToken {
  readonly #options: AccessTokenOptions
  #held: HeldToken | undefined
  /** The request for a new token, which all callers share. */
  #refreshing: Promise<HeldToken | undefined> | undefined

  constructor(options: AccessTokenOptions) {
    this.#options = options
    const configured = options.token?.reveal().trim()
    this.#held = configured ? { token: new Secret(configured), expiresAtMs: Number.POSITIVE_INFINITY } : undefined
  }

  /** Returns the current token, and gets a new one if it has expired. */
  async current(signal: AbortSignal): Promise<Secret> {
    const held = this.#held
    if (held && this.#options.host.clock.nowMs() < held.expiresAtMs) return held.token
    const renewed = await this.#renew(signal)
    if (!renewed) throw tokenRefused(`${this.#options.service} has no access token: set ${this.#options.missing}`)
    return renewed
  }

  /** Returns a newer token than `rejected`, which the service did not accept; undefined when only the operator can set one. */
  async replace(rejected: Secret, signal: AbortSignal): Promise<Secret | undefined> {
    if (this.#held && this.#held.token !== rejected) return this.#held.token
    return this.#renew(signal)
  }

  /** Resolves to undefined without a refresh token. */
  async #renew(signal: AbortSignal): Promise<Secret | undefined> {
    this.#refreshing ??= this.#requestToken().finally(() => {
      this.#refreshing = undefined
    })
    const renewed = await untilAborted(this.#refreshing, signal, 'The wait for an access token was aborted')
    if (renewed) this.#held = renewed
    return renewed?.token
  }

  async #requestToken(): Promise<HeldToken | undefined> {
    const { host, service, tokenUrl, onRefreshToken } = this.#options
    const endpoint = `the token endpoint of ${service}`
    try {
      const form = await this.#options.form()
      if (!form) return undefined
      const { json } = await callProvider({
        fetch: host.fetch,
        provider: endpoint,
        url: tokenUrl,
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: form.toString(),
        signal: new AbortController().signal,
        explain,
      })
      const grant = v.parse(grantSchema, json)
      if (grant.refresh_token !== undefined) await onRefreshToken?.(grant.refresh_token)
      return { token: new Secret(grant.access_token), expiresAtMs: host.clock.nowMs() + grant.expires_in * 1000 - MARGIN_MS }
    } catch (error) {
      if (error instanceof v.ValiError) throw new AppError('unavailable', `${endpoint.replace('the', 'The')} returned no access token`)
      if (error instanceof AppError && (error.code === 'invalid_request' || error.code === 'forbidden')) throw tokenRefused(error.message)
      const wait = error instanceof AppError && error.retryAfterSecs !== undefined ? { retryAfterSecs: error.retryAfterSecs } : {}
      throw new AppError('unavailable', errorText(error), wait)
    }
  }
}

function explain(json: unknown): string | undefined {
  const { success, output } = v.safeParse(refusalSchema, json)
  return success ? [output.error, output.error_description].filter(Boolean).join(': ') : undefined
}
