/** Requests to the mail API with the access token, which is renewed once when the API rejects it. */
import { callProvider, type ProviderAnswer, pathSegment, retryAfterSecs, withoutTrailing } from '@sluice/kit'
import { AccessToken, tokenRefused } from '@sluice/mail-common'
import { AppError, type Host, type Secret } from '@sluice/sdk'
import * as v from 'valibot'
import type { MailpushConfig } from './config.ts'

export interface ApiRequest {
  readonly method: 'GET' | 'POST'
  /** The segments of the path below the mailbox, which the client encodes. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: object | Uint8Array<ArrayBuffer>
  /** Sends the body to the interface for uploads, which takes more than the other. Default: false. */
  readonly isUpload?: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** Statuses besides 2xx that are results and not failures. */
  readonly accept?: readonly number[]
  /** See `ProviderCall.answerBytesMax`. */
  readonly answerBytesMax?: number
  readonly signal: AbortSignal
}

const MAILBOX_PATH = '/gmail/v1/users/me/'
const EXPLANATION_CHARS_MAX = 300

const refusalSchema = v.object({
  error: v.object({ message: v.optional(v.string()), errors: v.optional(v.array(v.object({ reason: v.optional(v.string()) })), []) }),
})

export class ApiClient {
  readonly #host: Host
  readonly #baseUrl: string
  readonly #uploadUrl: string
  readonly #accessToken: AccessToken

  constructor(host: Host, config: MailpushConfig) {
    this.#host = host
    this.#baseUrl = withoutTrailing(config.api_url, '/') + MAILBOX_PATH
    this.#uploadUrl = `${withoutTrailing(config.api_url, '/')}/upload${MAILBOX_PATH}`
    this.#accessToken = new AccessToken({
      host,
      service: 'mailpush',
      token: config.oauth_token,
      tokenUrl: config.token_url,
      missing: 'oauth_token, or refresh_token with its client',
      form: () => grantForm(config),
    })
  }

  /** Throws like `callProvider`. Reports exceeded rate limits as `rate_limited` under any status. */
  async request(request: ApiRequest): Promise<ProviderAnswer> {
    const token = await this.#accessToken.current(request.signal)
    let answer = await this.#attempt(request, token, [401, 403])
    if (answer.status === 401) {
      const newToken = await this.#accessToken.replace(token, request.signal)
      if (!newToken) throw tokenRefused('mailpush answered 401 (is oauth_token valid?)')
      answer = await this.#attempt(request, newToken, [403])
    }
    if (answer.status === 403) throw forbidden(answer, this.#host.clock.nowMs())
    return answer
  }

  #attempt(request: ApiRequest, token: Secret, accept: readonly number[]): Promise<ProviderAnswer> {
    const { path, query = {}, isUpload = false, headers = {}, ...rest } = request
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const search = given.length > 0 ? `?${new URLSearchParams(given)}` : ''
    return callProvider({
      ...rest,
      fetch: this.#host.fetch,
      provider: 'mailpush',
      url: (isUpload ? this.#uploadUrl : this.#baseUrl) + path.map(pathSegment).join('/') + search,
      headers: { ...headers, authorization: `Bearer ${token.reveal()}` },
      accept: [...(request.accept ?? []), ...accept],
      explain: (json) => refusalOf(json)?.message,
    })
  }
}

/** Returns undefined unless all three keys of a refresh are set. */
function grantForm({ client_id, client_secret, refresh_token }: MailpushConfig): URLSearchParams | undefined {
  if (!client_id || !client_secret || !refresh_token) return undefined
  const form = { grant_type: 'refresh_token', client_id, client_secret: client_secret.reveal(), refresh_token: refresh_token.reveal() }
  return new URLSearchParams(form)
}

const refusalOf = (json: unknown) => {
  const { success, output } = v.safeParse(refusalSchema, json)
  return success ? output.error : undefined
}

/** Returns the error for a 403, which the API also answers when a rate limit is exceeded. */
function forbidden({ json, headers }: ProviderAnswer, nowMs: number): AppError {
  const refusal = refusalOf(json)
  const explanation = refusal?.message?.slice(0, EXPLANATION_CHARS_MAX)
  const detail = `mailpush answered 403${explanation ? `: ${explanation}` : ''}`
  if (!refusal?.errors.some(({ reason }) => /rateLimitExceeded|quotaExceeded|dailyLimitExceeded/i.test(reason ?? ''))) {
    return new AppError('forbidden', detail)
  }
  const wait = retryAfterSecs(headers, nowMs)
  return new AppError('rate_limited', detail, wait === undefined ? {} : { retryAfterSecs: wait })
}
