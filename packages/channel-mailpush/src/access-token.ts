/** The access token of the mail API: the configured one, or tokens that the refresh token gets. */
import { callProvider, untilAborted } from '@sluice/kit'
import { AppError, errorText, type Host, Secret } from '@sluice/sdk'
import * as v from 'valibot'
import type { MailpushConfig } from './config.ts'

interface HeldToken {
  readonly token: Secret
  readonly expiresAtMs: number
}

/** A token is renewed this long before it expires, because the request with it takes time as well. */
const MARGIN_MS = 60_000

const grantSchema = v.object({
  access_token: v.pipe(v.string(), v.minLength(1)),
  expires_in: v.optional(v.pipe(v.number(), v.minValue(1)), 3600),
})
const refusalSchema = v.object({ error: v.string(), error_description: v.optional(v.string()) })

/** The cause of an error that only another token resolves. */
const REFUSED = 'only the operator can set another token'

/** Whether an error of this module or of `ApiClient` means that only the operator can help. */
export const isTokenRefused = (error: unknown): boolean => error instanceof AppError && error.cause === REFUSED

/** The error for a token that the API does not accept and that cannot be renewed. */
export const tokenRefused = (detail: string): AppError => new AppError('unavailable', detail, { cause: REFUSED })

/** Both methods throw `unavailable` when no token can be obtained. */
export class AccessToken {
  readonly #host: Host
  readonly #config: MailpushConfig
  #held: HeldToken | undefined
  /** The request for a new token, which all callers share. */
  #refreshing: Promise<HeldToken> | undefined

  constructor(host: Host, config: MailpushConfig) {
    this.#host = host
    this.#config = config
    const configured = config.oauth_token?.reveal().trim()
    this.#held = configured ? { token: new Secret(configured), expiresAtMs: Number.POSITIVE_INFINITY } : undefined
  }

  /** Returns the current token, and gets a new one if it has expired. */
  async current(signal: AbortSignal): Promise<Secret> {
    const held = this.#held
    return held && this.#host.clock.nowMs() < held.expiresAtMs ? held.token : this.#renew(signal)
  }

  /** Returns a newer token than `rejected`, which the API did not accept; undefined when only the operator can set one. */
  async replace(rejected: Secret, signal: AbortSignal): Promise<Secret | undefined> {
    if (this.#held && this.#held.token !== rejected) return this.#held.token
    return this.#grantForm() ? this.#renew(signal) : undefined
  }

  async #renew(signal: AbortSignal): Promise<Secret> {
    const form = this.#grantForm()
    if (!form) throw tokenRefused('mailpush has no access token: set oauth_token, or refresh_token with its client')
    this.#refreshing ??= this.#requestToken(form).finally(() => {
      this.#refreshing = undefined
    })
    this.#held = await untilAborted(this.#refreshing, signal, 'The wait for an access token was aborted')
    return this.#held.token
  }

  /** Returns the form of a token request; undefined unless all three keys of a refresh are set. */
  #grantForm(): URLSearchParams | undefined {
    const { client_id, client_secret, refresh_token } = this.#config
    if (!client_id || !client_secret || !refresh_token) return undefined
    const form = { grant_type: 'refresh_token', client_id, client_secret: client_secret.reveal(), refresh_token: refresh_token.reveal() }
    return new URLSearchParams(form)
  }

  async #requestToken(form: URLSearchParams): Promise<HeldToken> {
    const { fetch, clock } = this.#host
    try {
      const { json } = await callProvider({
        fetch,
        provider: 'the token endpoint of mailpush',
        url: this.#config.token_url,
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: form.toString(),
        signal: new AbortController().signal,
        explain,
      })
      const grant = v.parse(grantSchema, json)
      return { token: new Secret(grant.access_token), expiresAtMs: clock.nowMs() + grant.expires_in * 1000 - MARGIN_MS }
    } catch (error) {
      if (error instanceof v.ValiError) throw new AppError('unavailable', 'The token endpoint of mailpush returned no access token')
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
