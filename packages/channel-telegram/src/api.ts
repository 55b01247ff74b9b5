/** Calls of Telegram's Bot API. The token is part of every URL, so no URL may appear in an error or a log line. */
import type { ApiMethods as MethodsOf } from '@grammyjs/types'
import { callProvider, pathSegment, withoutTrailing } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Secret } from '@sluice/sdk'

/** Files are sent as forms, so the parameters of no method contain one. */
type ApiMethods = MethodsOf<never>

export type ParamsOf<Method extends keyof ApiMethods> =
  Parameters<ApiMethods[Method]> extends readonly [] ? object : NonNullable<Parameters<ApiMethods[Method]>[0]>

export interface CallOptions {
  readonly signal: AbortSignal
  /** Default 30,000. */
  readonly timeoutMs?: number
  /** The largest answer, for methods whose answers exceed the default of `callProvider`. */
  readonly answerBytesMax?: number
}

/** A refusal as the API reports it. */
export interface Refusal {
  readonly code: number
  readonly description: string
  /** The new id of a group that became a supergroup. */
  readonly migratedTo?: string
}

/** A token of another form could change the URL that it becomes part of. */
const TOKEN = /^(\d+):[\w-]+$/
/** The API's codes for an unknown or truncated token. Nothing is done until the operator corrects it. */
const BAD_TOKEN = [401, 404]

const MALFORMED: Refusal = { code: 401, description: 'malformed' }

/** Returns the bot's own id, or undefined for a malformed token. */
export const botIdOf = (token: Secret): string | undefined => TOKEN.exec(token.reveal().trim())?.[1]

export const isBadToken = (error: unknown): boolean => BAD_TOKEN.includes(refusalOf(error)?.code ?? 0)

/** Returns the refusal behind an error of `BotApi.call`, if there is one. */
export const refusalOf = (error: unknown): Refusal | undefined =>
  error instanceof AppError ? (error.cause as Refusal | undefined) : undefined

export class BotApi {
  readonly fetch: typeof fetch
  readonly #root: string
  readonly #token: Secret

  constructor(fetchApi: typeof fetch, apiUrl: string, token: Secret) {
    this.fetch = fetchApi
    this.#root = withoutTrailing(apiUrl, '/')
    this.#token = token
  }

  /**
   * Calls a method and returns its result. Parameters with a file are passed as a form. Throws as `callProvider` does, with the
   * `Refusal` as the cause if the API gave one; also `unavailable` for a bad token and `conflict` if another program polls.
   */
  async call<Method extends keyof ApiMethods & string>(
    method: Method,
    params: ParamsOf<Method> | FormData,
    options: CallOptions,
  ): Promise<unknown> {
    let refusal: Refusal | undefined
    let waitSecs: number | undefined
    try {
      const { json } = await callProvider({
        fetch: this.fetch,
        provider: 'telegram',
        url: `${this.#root}/bot${this.#checkedToken()}/${method}`,
        method: 'POST',
        body: params,
        explain(answer) {
          refusal = readRefusal(answer)
          waitSecs = readWaitSecs(answer)
          return refusal?.description
        },
        ...options,
      })
      const { ok, result } = members(json)
      if (ok !== true) throw new AppError('upstream', `telegram did not say whether ${method} is done`)
      return result
    } catch (error) {
      throw error instanceof AppError ? withRefusal(error, refusal, waitSecs) : error
    }
  }

  /** Returns the address of a file. It contains the token and must not be shown. Throws `invalid_request` for a path with `..`. */
  fileUrl(path: string): string {
    const segments = path.split('/').map((part) => (part === '' ? '' : pathSegment(part)))
    return `${this.#root}/file/bot${this.#checkedToken()}/${segments.join('/')}`
  }

  #checkedToken(): string {
    if (botIdOf(this.#token) === undefined)
      throw new AppError('unavailable', 'bot_token is not of the form <number>:<letters>', { cause: MALFORMED })
    return this.#token.reveal().trim()
  }
}

function withRefusal(error: AppError, refusal: Refusal | undefined, waitSecs: number | undefined): AppError {
  if (!refusal) return error
  const retryAfterSecs = error.retryAfterSecs ?? waitSecs
  const { mayHaveArrived } = error
  const options = { cause: refusal, mayHaveArrived, ...(retryAfterSecs !== undefined && { retryAfterSecs }) }
  if (BAD_TOKEN.includes(refusal.code)) return new AppError('unavailable', `${error.message} (is bot_token valid?)`, options)
  return new AppError(refusal.code === 409 ? 'conflict' : error.code, error.message, options)
}

function readRefusal(answer: unknown): Refusal | undefined {
  const { ok, error_code: code, description, parameters } = members(answer)
  if (ok !== false || typeof code !== 'number') return undefined
  const { migrate_to_chat_id: migratedTo } = members(parameters)
  return { code, description: text(description), ...(Number.isSafeInteger(migratedTo) && { migratedTo: String(migratedTo) }) }
}

function readWaitSecs(answer: unknown): number | undefined {
  const { retry_after: wait } = members(members(answer).parameters)
  return typeof wait === 'number' && wait >= 0 ? Math.ceil(wait) : undefined
}
