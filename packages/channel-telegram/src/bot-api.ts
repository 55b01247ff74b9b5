/** The Bot API: one call, with its refusals told apart as `Channel.send` promises. The token is in every URL, and in nothing else. */
import type { ApiMethods as MethodsOf } from '@grammyjs/types'
import { callProvider, type ProviderCall, withoutTrailing } from '@sluice/kit'
import { list, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Secret } from '@sluice/sdk'

/** Files are sent as forms, so that no call holds one. */
type ApiMethods = MethodsOf<never>

export type CallOptions = Pick<ProviderCall, 'signal' | 'timeoutMs' | 'answerBytesMax'>

export interface BotApi {
  /**
   * Resolves to the result; parameters with a file in them are a form. Throws as `callProvider` does, with the `Refusal` where
   * the API gave one, `unavailable` for a bad token and `conflict` where another program polls.
   */
  call<Method extends keyof ApiMethods & string>(
    method: Method,
    params: ParamsOf<Method> | FormData,
    options: CallOptions,
  ): Promise<unknown>
  /** Where a file can be fetched, token included: never to be shown. */
  fileUrl(path: string): string
  readonly fetch: typeof fetch
}

/** What the API says when it refuses. */
export interface Refusal {
  readonly code: number
  readonly description: string
  /** The group lives on under this id. */
  readonly migratedTo?: string
}

export type ParamsOf<Method extends keyof ApiMethods> =
  Parameters<ApiMethods[Method]> extends readonly [] ? object : NonNullable<Parameters<ApiMethods[Method]>[0]>

export interface BotApiOptions {
  readonly fetch: typeof fetch
  readonly apiUrl: string
  readonly token: Secret
}

/** A token of any other form could change the URL it is put into. */
const TOKEN = /^(\d+):[\w-]+$/
/** A token that is unknown, or cut short: the operator mends it, and until then nothing was done. */
const BAD_TOKEN = [401, 404]

/** The bot's own id; undefined for what cannot be a token. */
export const botIdOf = (token: Secret): string | undefined => TOKEN.exec(token.reveal().trim())?.[1]

export const isBadToken = (error: unknown): boolean => BAD_TOKEN.includes(refusalOf(error)?.code ?? 0)

export const refusalOf = (error: unknown): Refusal | undefined =>
  error instanceof AppError ? (error.cause as Refusal | undefined) : undefined

export function createBotApi({ fetch, apiUrl, token }: BotApiOptions): BotApi {
  const root = withoutTrailing(apiUrl, '/')
  const checked = (): string => {
    if (botIdOf(token) === undefined) throw new AppError('unavailable', 'bot_token is not of the form <number>:<letters>')
    return token.reveal().trim()
  }
  return {
    fetch,
    async call(method, params, options) {
      let refusal: Refusal | undefined
      let wait: number | undefined
      try {
        const { json } = await callProvider({
          fetch,
          provider: 'telegram',
          url: `${root}/bot${checked()}/${method}`,
          method: 'POST',
          body: params,
          explain(answer) {
            refusal = readRefusal(answer)
            wait = readWait(answer)
            return refusal?.description
          },
          ...options,
        })
        const { ok, result } = members(json)
        if (ok !== true) throw new AppError('upstream', `telegram did not say whether ${method} is done`)
        return result
      } catch (error) {
        throw error instanceof AppError ? told(error, refusal, wait) : error
      }
    },
    fileUrl: (path) => `${root}/file/bot${checked()}/${path.split('/').map(encodeURIComponent).join('/')}`,
  }
}

function told(error: AppError, refusal: Refusal | undefined, wait: number | undefined): AppError {
  if (!refusal) return error
  const retryAfterSecs = error.retryAfterSecs ?? wait
  const options = { cause: refusal, ...(retryAfterSecs !== undefined && { retryAfterSecs }) }
  if (BAD_TOKEN.includes(refusal.code)) return new AppError('unavailable', `${error.message} (is bot_token valid?)`, options)
  return new AppError(refusal.code === 409 ? 'conflict' : error.code, error.message, options)
}

function readRefusal(answer: unknown): Refusal | undefined {
  const { ok, error_code: code, description, parameters } = members(answer)
  if (ok !== false || typeof code !== 'number') return undefined
  const { migrate_to_chat_id: migratedTo } = members(parameters)
  return { code, description: text(description), ...(Number.isSafeInteger(migratedTo) && { migratedTo: String(migratedTo) }) }
}

function readWait(answer: unknown): number | undefined {
  const { retry_after: wait } = members(members(answer).parameters)
  return typeof wait === 'number' && wait >= 0 ? Math.ceil(wait) : undefined
}

/** The list a method gives, or `upstream`. */
export function listOf(result: unknown, method: string): readonly unknown[] {
  if (!Array.isArray(result)) throw new AppError('upstream', `telegram answered ${method} with no list`)
  return list(result)
}
