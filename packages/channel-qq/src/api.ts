/** Requests to the API of QQ bots. A refusal has a code in addition to its HTTP status; "Error codes" of each method lists them. */
import { callProvider, nothingSent, SharedToken, urlUnder } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type ErrorCode, type Host } from '@sluice/sdk'
import { apiUrlOf, type QqConfig } from './config.ts'

/** The message that is answered is too old, was answered too often, or is unknown. */
const TOO_LATE = [304_103, 40_034_005, 40_034_024, 40_034_026, 40_034_128]
/** The message was sent before. */
const REPEATED = 40_054_005
const CODES: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [22_009, 'rate_limited'],
  [40_034_100, 'rate_limited'],
  [40_034_101, 'forbidden'],
  [40_034_105, 'forbidden'],
  [40_054_002, 'forbidden'],
  [40_054_003, 'forbidden'],
  [40_054_004, 'forbidden'],
  [40_054_013, 'forbidden'],
  [40_054_016, 'forbidden'],
  // "The message could not be sent, try again later" does not say whether it was sent.
  [50_055_001, 'upstream'],
  [50_055_002, 'upstream'],
  [50_055_006, 'upstream'],
])
const TOKEN_CODES = { from: 11_241, to: 11_256 }
/** A quota is that of a minute. */
const QUOTA_WAIT_SECS = 60

/** The meaning of a refusal's code for a reply. */
export type Refusal = 'too late' | 'repeated'

export class QqApi {
  readonly fetch: typeof fetch
  readonly url: string
  readonly config: QqConfig
  readonly #token: SharedToken

  constructor({ fetch, clock }: Pick<Host, 'fetch' | 'clock'>, config: QqConfig) {
    this.fetch = fetch
    this.config = config
    this.url = apiUrlOf(config)
    this.#token = new SharedToken(clock, () => this.#requestToken())
  }

  /** Returns the value that authorizes a request and a connection. */
  async authorization(signal: AbortSignal): Promise<string> {
    return `QQBot ${await this.#token.current(signal)}`
  }

  /** Calls a method. Throws as `Channel.send` does; the `cause` of an error is a `Refusal` where the code has a meaning of its own. */
  async call(method: 'GET' | 'POST' | 'PUT', path: `/${string}`, body: object | undefined, signal: AbortSignal): Promise<Members> {
    const attempt = (token: string) => this.#request(method, path, body, signal, token)
    const answer = await this.#token.use(signal, attempt, (each) => each === 'rejected')
    if (answer === 'rejected') throw new AppError('unavailable', `qq refused ${path}: the access token is not accepted`)
    return answer
  }

  async #request(method: string, path: `/${string}`, body: object | undefined, signal: AbortSignal, token: string) {
    let code = 0
    try {
      const { status, json } = await callProvider({
        fetch: this.fetch,
        provider: 'qq',
        url: urlUnder(this.url, path),
        method,
        headers: { authorization: `QQBot ${token}`, 'x-union-appid': this.config.app_id },
        ...(body && { body }),
        signal,
        accept: [401],
        explain(answer) {
          code = codeIn(answer)
          return explain(answer)
        },
      })
      code = codeIn(json)
      if (status === 401 || isTokenCode(code)) return 'rejected' as const
      // A refusal may come with status 200.
      if (code !== 0) throw new AppError('invalid_request', `qq refused ${path}: ${explain(json)}`)
      return members(json)
    } catch (error) {
      if (isTokenCode(code)) return 'rejected' as const
      throw error instanceof AppError ? refusal(error, code) : error
    }
  }

  /** The answer to a wrong secret has status 200 and a code. */
  async #requestToken() {
    const { app_id: appId, app_secret, token_url: url } = this.config
    const { signal } = new AbortController()
    const body = { appId, clientSecret: app_secret.reveal() }
    try {
      const { json } = await callProvider({ fetch: this.fetch, provider: 'qq', url, method: 'POST', body, signal, explain })
      const { access_token, expires_in } = members(json)
      if (text(access_token) !== '') return { token: text(access_token), lastsSecs: Number(expires_in) }
      throw new AppError('unavailable', `qq granted no access token: ${explain(json) ?? 'no reason given'}. Check app_id and app_secret`, {
        cause: 'refused',
      })
    } catch (error) {
      // Without a token nothing was sent, whatever happened to this request.
      if (!(error instanceof AppError) || error.code === 'unavailable' || error.code === 'rate_limited') throw nothingSent(error)
      const wait = error.retryAfterSecs === undefined ? {} : { retryAfterSecs: error.retryAfterSecs }
      throw new AppError('unavailable', error.message, { ...wait, ...(isRefused(error) && { cause: 'refused' }) })
    }
  }
}

const isRefused = ({ code }: AppError): boolean => code === 'invalid_request' || code === 'forbidden'

/** Whether QQ refused the AppID or the AppSecret, which only the operator can correct. */
export const isSecretRefused = (error: unknown): boolean => error instanceof AppError && error.cause === 'refused'

function codeIn(json: unknown): number {
  const { err_code, code } = members(json)
  return Number(err_code ?? code) || 0
}

const isTokenCode = (code: number): boolean => code >= TOKEN_CODES.from && code <= TOKEN_CODES.to

function explain(json: unknown): string | undefined {
  const { message } = members(json)
  const code = codeIn(json)
  return text(message) || code !== 0 ? `${text(message) || 'no reason given'} (${code})` : undefined
}

function refusal(error: AppError, code: number): AppError {
  const { retryAfterSecs, mayHaveArrived } = error
  const wait = { mayHaveArrived, ...(retryAfterSecs !== undefined && { retryAfterSecs }) }
  if (TOO_LATE.includes(code)) return new AppError('invalid_request', error.message, { cause: 'too late' satisfies Refusal })
  if (code === REPEATED) return new AppError('invalid_request', error.message, { cause: 'repeated' satisfies Refusal })
  const known = CODES.get(code)
  if (known === undefined) return error
  return new AppError(known, error.message, known === 'rate_limited' ? { retryAfterSecs: QUOTA_WAIT_SECS, ...wait } : wait)
}
