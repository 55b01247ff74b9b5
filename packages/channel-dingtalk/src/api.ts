/**
 * Requests to DingTalk. The newer API at api.dingtalk.com answers a refusal with a status and a code, the older one at
 * oapi.dingtalk.com with status 200 and an `errcode`. One access token is valid for both.
 */
import { callProvider, type ProviderAnswer, SharedToken, urlUnder } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Host } from '@sluice/sdk'
import type { DingtalkConfig } from './config.ts'

/** Codes of the newer API for a token that is invalid or has ended. */
const TOKEN_CODES = /^(?:InvalidAuthentication|InvalidAccessToken|Forbidden\.AccessDenied\.AccessToken(?:Invalid|Expired))/i
/** Codes of the newer API for too many calls; they come with status 403. */
const QUOTA_CODES = /qpslimit|throttl|toomanyrequests|flowcontrol/i
/** Codes of the older API for too many calls, and for a robot that wrote more than 20 messages in a minute. */
const QUOTA_ERRCODES = [88, 90_002, 90_018, 130_101, 410_100]
/** Codes of the older API for a token that is invalid or has ended. */
const TOKEN_ERRCODES = [40_001, 40_014, 42_001]
const SYSTEM_BUSY = -1
/** A robot may write 20 messages to a group in a minute; afterwards it must wait for up to ten. */
const QUOTA_WAIT_SECS = 60

export class DingtalkApi {
  readonly fetch: typeof fetch
  readonly config: DingtalkConfig
  readonly robotCode: string
  readonly #token: SharedToken

  constructor({ fetch, clock }: Pick<Host, 'fetch' | 'clock'>, config: DingtalkConfig) {
    this.fetch = fetch
    this.config = config
    this.robotCode = config.robot_code ?? config.client_id
    this.#token = new SharedToken(clock, () => this.#requestToken())
  }

  /** Calls a method of the newer API with the access token. Throws as `Channel.send` does. */
  async call(path: `/${string}`, body: object, signal: AbortSignal): Promise<Members> {
    const answer = await this.#token.use(
      signal,
      (token) => this.#request(path, body, signal, { 'x-acs-dingtalk-access-token': token }),
      ({ status, json }) => status === 401 || (status !== 200 && TOKEN_CODES.test(text(members(json).code))),
    )
    return refuse(path, answer)
  }

  /** Calls a method of the newer API that needs no token. */
  async open(path: `/${string}`, body: object, signal: AbortSignal): Promise<ProviderAnswer> {
    return this.#request(path, body, signal)
  }

  /** Uploads a file to the older API. Returns its id. */
  async upload(type: string, form: FormData, signal: AbortSignal): Promise<string> {
    const answer = await this.#token.use(
      signal,
      (token) => this.#old(`/media/upload?${new URLSearchParams({ access_token: token, type })}`, form, signal),
      ({ errcode }) => TOKEN_ERRCODES.includes(Number(errcode)),
    )
    refuseOld('media/upload', answer)
    const id = text(answer.media_id)
    if (id === '') throw new AppError('upstream', 'dingtalk accepted a file but returned no id for it')
    return id
  }

  /**
   * Replies over the session of a message. Returns false if DingTalk does not accept the session any more. The session is a
   * credential, so no error contains it.
   */
  async reply(session: string, body: object, signal: AbortSignal): Promise<boolean> {
    const answer = await this.#old(`/robot/sendBySession?${new URLSearchParams({ session })}`, body, signal)
    const refusal = refusalOf('robot/sendBySession', answer)
    if (refusal && refusal.code !== 'invalid_request') throw refusal
    return !refusal
  }

  async #request(path: `/${string}`, body: object, signal: AbortSignal, headers: Readonly<Record<string, string>> = {}) {
    return callProvider({
      fetch: this.fetch,
      provider: 'dingtalk',
      url: urlUnder(this.config.api_url, path),
      method: 'POST',
      headers,
      body,
      signal,
      // These may mean another thing than their number: a token that has ended, or too many calls.
      accept: [400, 401, 403],
      explain,
    })
  }

  async #old(path: `/${string}`, body: object | FormData, signal: AbortSignal): Promise<Members> {
    const { json } = await callProvider({
      fetch: this.fetch,
      provider: 'dingtalk',
      url: urlUnder(this.config.oapi_url, path),
      method: 'POST',
      body,
      signal,
      explain,
    })
    return members(json)
  }

  async #requestToken() {
    const { client_id, client_secret } = this.config
    const path = '/v1.0/oauth2/accessToken'
    const body = { appKey: client_id, appSecret: client_secret.reveal() }
    const answer = await this.#request(path, body, new AbortController().signal).catch((error: unknown) => {
      // Without a token nothing was sent, whatever happened to this request.
      if (!(error instanceof AppError) || error.code === 'rate_limited') throw error
      throw new AppError('unavailable', error.message, error.retryAfterSecs === undefined ? {} : { retryAfterSecs: error.retryAfterSecs })
    })
    if (answer.status !== 200) {
      throw new AppError('unavailable', `dingtalk granted no access token: ${explain(answer.json) ?? `status ${answer.status}`}`)
    }
    const { accessToken, expireIn } = members(answer.json)
    return { token: text(accessToken), lastsSecs: Number(expireIn) }
  }
}

/** Returns the explanation in a refusal, with the code that DingTalk's documentation lists. */
export function explain(json: unknown): string | undefined {
  const { code, message, errcode, errmsg } = members(json)
  return (
    [text(code) || (typeof errcode === 'number' ? String(errcode) : ''), text(message) || text(errmsg)].filter(Boolean).join(': ') ||
    undefined
  )
}

/** Whether the newer API refused a call because there were too many. */
export const isQuota = (json: unknown): boolean => QUOTA_CODES.test(text(members(json).code))

/** Returns the members of an answer with status 200. Throws for any other. */
function refuse(path: string, { status, json }: ProviderAnswer): Members {
  if (status >= 200 && status < 300) return members(json)
  const why = `dingtalk refused ${path}: ${explain(json) ?? `status ${status}`}`
  if (isQuota(json)) throw new AppError('rate_limited', why, { retryAfterSecs: QUOTA_WAIT_SECS })
  if (status === 401) throw new AppError('unavailable', why)
  throw new AppError(status === 403 ? 'forbidden' : 'invalid_request', why)
}

function refuseOld(method: string, answer: Members): void {
  const refusal = refusalOf(method, answer)
  if (refusal) throw refusal
}

/** Returns the error for an answer of the older API; undefined if it accepted the request. */
function refusalOf(method: string, answer: Members): AppError | undefined {
  const { errcode } = answer
  if (errcode === 0) return undefined
  if (typeof errcode !== 'number') return new AppError('upstream', `dingtalk answered ${method} in a form that it does not document`)
  const why = `dingtalk refused ${method}: ${explain(answer)}`
  if (QUOTA_ERRCODES.includes(errcode)) return new AppError('rate_limited', why, { retryAfterSecs: QUOTA_WAIT_SECS })
  if (errcode === SYSTEM_BUSY || TOKEN_ERRCODES.includes(errcode)) return new AppError('unavailable', why)
  return new AppError('invalid_request', why)
}
