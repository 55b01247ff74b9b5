/** Calls of the platform's API. Each has the tenant access token, and is repeated once with another one if the platform refuses it. */
import { callProvider, readUpTo, retryAfterSecs, SharedToken, urlUnder } from '@sluice/kit'
import { type Members, members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import { AppError, type Host } from '@sluice/sdk'
import type { WorkchatConfig } from './config.ts'
import { isInvalidToken, type Refusal, RefusedError, refusalIn } from './refusal.ts'
import { requestToken } from './token.ts'

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH'
  /** Below `/open-apis`, without a query. */
  readonly path: `/${string}`
  readonly query?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: object | FormData
  readonly signal: AbortSignal
  readonly timeoutMs?: number
  readonly answerBytesMax?: number
}

type Outcome = { readonly answer: Members } | { readonly error: unknown }

/** Codes of calls that the platform may have executed. */
const UNKNOWN = new Set(['upstream', 'upstream_timeout'])
/** The pauses after each attempt. With the time limit of each call, all end within a minute. */
const PAUSES_MS = [1000, 4000, 0]
const SURE_MS_MAX = 15_000
const REFUSAL_BYTES_MAX = 65_536
/** The seconds until a limit of the gateway ends. */
const RESET_HEADER = 'x-ogw-ratelimit-reset'
/** Errors whose number in the body says more than their status: the platform sends most refusals as 4xx, and some as 5xx. */
const OF_STATUS = new Set(['invalid_request', 'forbidden', 'unavailable'])

export class WorkchatApi {
  readonly baseUrl: string
  readonly #host: Host
  readonly #token: SharedToken

  constructor(host: Host, config: WorkchatConfig, baseUrl: string) {
    this.#host = host
    this.baseUrl = baseUrl
    this.#token = new SharedToken(host.clock, () => requestToken(host, config, baseUrl))
  }

  /** Returns `data` of the answer, or the whole answer where the platform has no `data`. Throws as `Channel.send` does. */
  async call(call: Call): Promise<Members> {
    const isRefused = (outcome: Outcome): boolean =>
      'error' in outcome && outcome.error instanceof RefusedError && isInvalidToken(outcome.error.refusal)
    const outcome = await this.#token.use(call.signal, (token) => this.#attempt(call, token), isRefused)
    if ('error' in outcome) throw outcome.error
    return outcome.answer
  }

  /**
   * Makes a call that the platform recognises when it is repeated, for an hour: repeats it soon while its outcome is unknown. The outbox
   * must not do that, because it may repeat a message much later. After an unknown outcome, a failure of a repeat does not show that
   * nothing was sent.
   */
  async callSurely(call: Call): Promise<Members> {
    let unknown: AppError | undefined
    for (const pauseMs of PAUSES_MS) {
      try {
        return await this.call({ ...call, timeoutMs: SURE_MS_MAX })
      } catch (error) {
        if (!unknown && !(error instanceof AppError && UNKNOWN.has(error.code))) throw error
        unknown ??= error as AppError
      }
      if (pauseMs > 0) await this.#host.clock.sleep(pauseMs, call.signal)
      if (call.signal.aborted) break
    }
    throw unknown ?? new AppError('upstream', 'The outcome of a call to workchat is not known')
  }

  /** Requests a file, and returns the answer, whatever its status. Follows no redirect. */
  async download({ path, query = {}, signal }: Pick<Call, 'path' | 'query' | 'signal'>): Promise<Response> {
    const url = this.#urlOf(path, query)
    const attempt = async (token: string): Promise<{ readonly response: Response; readonly refusal?: Refusal | undefined }> => {
      const headers = { authorization: `Bearer ${token}` }
      const response = await this.#host.fetch(url, { headers, redirect: 'manual', signal })
      if (![400, 401].includes(response.status)) return { response }
      const said = await readUpTo(response, REFUSAL_BYTES_MAX)
      const refusal = said && refusalIn(parsedOrUndefined(said))
      return { response: new Response(null, { status: response.status }), refusal }
    }
    const { response } = await this.#token.use(signal, attempt, ({ refusal }) => isInvalidToken(refusal))
    return response
  }

  #urlOf(path: `/${string}`, query: Readonly<Record<string, string>>): string {
    const search = new URLSearchParams(query).toString()
    return urlUnder(this.baseUrl, `/open-apis${path}`) + (search === '' ? '' : `?${search}`)
  }

  async #attempt(call: Call, token: string): Promise<Outcome> {
    try {
      return { answer: await this.#once(call, token) }
    } catch (error) {
      return { error }
    }
  }

  async #once({ path, query = {}, method, ...options }: Call, token: string): Promise<Members> {
    const what = `${method} ${path.replace(/\/om_[^/]+/g, '/…')}`
    let headers = new Headers()
    let refusal: Refusal | undefined
    const fetch: Host['fetch'] = async (input, init) => {
      const response = await this.#host.fetch(input, init)
      headers = response.headers
      return response
    }
    try {
      const { json } = await callProvider({
        fetch,
        provider: 'workchat',
        url: this.#urlOf(path, query),
        method,
        headers: { authorization: `Bearer ${token}` },
        explain(answer) {
          refusal = refusalIn(answer)
          return refusal && `${refusal.code}: ${refusal.message}`
        },
        ...options,
      })
      const answer = members(json)
      const refused = refusalIn(answer)
      if (refused) throw new RefusedError(what, refused, this.#waitOf(headers))
      if (answer.code !== 0) throw new AppError('upstream', `workchat answered ${what} in a form that it does not document`)
      return 'data' in answer ? members(answer.data) : answer
    } catch (error) {
      if (!(error instanceof AppError) || error instanceof RefusedError) throw error
      const wait = this.#waitOf(headers)
      const { mayHaveArrived } = error
      if (refusal && OF_STATUS.has(error.code)) throw new RefusedError(what, refusal, { ...wait, mayHaveArrived })
      const isLimit = error.code === 'rate_limited' && 'retryAfterSecs' in wait
      throw isLimit ? new AppError('rate_limited', error.message, wait) : error
    }
  }

  #waitOf(headers: Headers): { readonly retryAfterSecs?: number } {
    const reset = headers.get(RESET_HEADER)?.trim() ?? ''
    const secs = retryAfterSecs(headers, this.#host.clock.nowMs()) ?? (/^\d{1,6}$/.test(reset) ? Number(reset) : undefined)
    return secs === undefined ? {} : { retryAfterSecs: secs }
  }
}
