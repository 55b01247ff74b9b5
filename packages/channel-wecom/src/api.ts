/**
 * Requests to the API of WeCom. It answers with status 200 and an `errcode`; see https://developer.work.weixin.qq.com/document/path/90313.
 */
import { callProvider, nothingSent, readUpTo, SharedToken, urlUnder } from '@sluice/kit'
import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type ErrorCode, type Host } from '@sluice/sdk'
import { appOf, type WecomConfig } from './config.ts'

/** The access token is invalid or has ended. */
const TOKEN_CODES = [40_001, 40_014, 41_001, 42_001]
const CODES: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [-1, 'unavailable'],
  [45_009, 'rate_limited'],
  [45_033, 'rate_limited'],
  [45_047, 'rate_limited'],
  [48_002, 'forbidden'],
  [60_011, 'forbidden'],
  [60_020, 'forbidden'],
  [93_000, 'forbidden'],
  [301_002, 'forbidden'],
])
/** WeCom counts in minutes. */
const QUOTA_WAIT_SECS = 60
const JSON_BYTES_MAX = 65_536

/** A file, or the JSON that refuses it. */
interface MediaAnswer {
  readonly file?: Response
  readonly refusal?: Members
}

export class WecomApi {
  readonly fetch: typeof fetch
  readonly config: WecomConfig
  readonly #token: SharedToken

  constructor({ fetch, clock }: Pick<Host, 'fetch' | 'clock'>, config: WecomConfig) {
    this.fetch = fetch
    this.config = config
    this.#token = new SharedToken(clock, () => this.#requestToken())
  }

  /** Calls a method as the app: by POST with a body, else by GET. Throws as `Channel.send` does. */
  async asApp(method: string, query: Readonly<Record<string, string>>, body: object | undefined, signal: AbortSignal): Promise<Members> {
    const answer = await this.#token.use(
      signal,
      (access_token) => this.#request(method, { access_token, ...query }, body, signal),
      ({ errcode }) => TOKEN_CODES.includes(Number(errcode)),
    )
    return accepted(method, answer)
  }

  /** Returns the name of a member of the organisation; see https://developer.work.weixin.qq.com/document/path/90196. */
  async nameOf(userid: string, signal: AbortSignal): Promise<string> {
    return text((await this.asApp('user/get', { userid }, undefined, signal)).name)
  }

  /** Calls a method as the group robot, whose key replaces all credentials. */
  async asRobot(method: string, query: Readonly<Record<string, string>>, body: object, signal: AbortSignal): Promise<Members> {
    const key = this.config.webhook_key?.reveal().trim() ?? ''
    return accepted(method, await this.#request(`webhook/${method}`, { key, ...query }, body, signal))
  }

  /** Requests a file that a person sent to the app. The answer is the file, or JSON that refuses it, which is thrown. */
  async media(media_id: string, signal: AbortSignal): Promise<Response> {
    const attempt = async (access_token: string): Promise<MediaAnswer> => {
      const response = await this.fetch(this.#url('media/get', { access_token, media_id }), { redirect: 'manual', signal })
      if (!/json|text\/plain/.test(response.headers.get('content-type') ?? '') || response.headers.has('content-disposition'))
        return { file: response }
      return { refusal: members(parsedOrUndefined((await readUpTo(response, JSON_BYTES_MAX)) ?? '')) }
    }
    // No `instanceof Response`: the HTTP server of the daemon replaces the global class, and what `fetch` returns is of the former one.
    const isRejected = ({ refusal }: MediaAnswer) => TOKEN_CODES.includes(Number(refusal?.errcode))
    const { file, refusal } = await this.#token.use(signal, attempt, isRejected)
    if (file) return file
    throw refusalOf('media/get', refusal ?? {}) ?? new AppError('upstream', 'wecom sent no file')
  }

  #url(method: string, query: Readonly<Record<string, string>>): string {
    return urlUnder(this.config.api_url, `/cgi-bin/${method}?${new URLSearchParams(query)}`)
  }

  async #request(method: string, query: Readonly<Record<string, string>>, body: object | undefined, signal: AbortSignal): Promise<Members> {
    const { json } = await callProvider({
      fetch: this.fetch,
      provider: 'wecom',
      url: this.#url(method, query),
      ...(body ? { method: 'POST', body } : { method: 'GET' }),
      signal,
      explain,
    })
    return members(json)
  }

  async #requestToken() {
    const app = appOf(this.config)
    if (!app) throw new AppError('unavailable', 'The keys of the app are not set')
    const url = this.#url('gettoken', { corpid: app.corpId, corpsecret: app.secret() })
    const { signal } = new AbortController()
    try {
      const { json } = await callProvider({ fetch: this.fetch, provider: 'wecom', url, method: 'GET', signal, explain })
      const { access_token, expires_in } = members(json)
      if (text(access_token) !== '') return { token: text(access_token), lastsSecs: Number(expires_in) }
      throw new AppError(
        'unavailable',
        `wecom granted no access token: ${explain(json) ?? 'no reason given'}. Check corp_id and app_secret`,
      )
    } catch (error) {
      // Without a token nothing was sent, whatever happened to this request.
      if (!(error instanceof AppError) || error.code === 'unavailable' || error.code === 'rate_limited') throw nothingSent(error)
      throw new AppError('unavailable', error.message, error.retryAfterSecs === undefined ? {} : { retryAfterSecs: error.retryAfterSecs })
    }
  }
}

/** Returns the explanation of a refusal without the hint, which repeats the request. */
export function explain(json: unknown): string | undefined {
  const { errcode, errmsg } = members(json)
  if (typeof errcode !== 'number') return undefined
  return `${text(errmsg).split(/,? ?(?:hint|from ip)\b/)[0] || 'no reason given'} (${errcode})`
}

function accepted(method: string, answer: Members): Members {
  const refusal = refusalOf(method, answer)
  if (refusal) throw refusal
  return answer
}

/** Returns the error for an answer; undefined if WeCom accepted the request. */
export function refusalOf(method: string, answer: Members): AppError | undefined {
  const { errcode } = answer
  if (errcode === 0) return undefined
  if (typeof errcode !== 'number') return new AppError('upstream', `wecom answered ${method} in a form that it does not document`)
  const why = `wecom refused ${method}: ${explain(answer)}`
  if (TOKEN_CODES.includes(errcode)) return new AppError('unavailable', why)
  const code = CODES.get(errcode) ?? 'invalid_request'
  return new AppError(code, why, code === 'rate_limited' ? { retryAfterSecs: QUOTA_WAIT_SECS } : {})
}
