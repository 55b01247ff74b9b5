/** One request to the mail API, with a token that is renewed once where the API does not take it. */

import { callProvider, type ProviderAnswer, type ProviderCall, retryAfterSecs, withoutTrailing } from '@sluice/kit'
import { AppError, type Host, type Secret } from '@sluice/sdk'
import * as v from 'valibot'
import type { AccessToken } from './access-token.ts'
import type { MailpushConfig } from './config.ts'

export interface ApiRequest extends Pick<ProviderCall, 'body' | 'accept' | 'answerBytesMax' | 'signal'> {
  readonly method: 'GET' | 'POST'
  /** Below the mailbox; each step is encoded. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string | undefined>>
}

/** Throws as `callProvider` does; refusals for asking too often are `rate_limited`, whatever their status. */
export type RequestApi = (request: ApiRequest) => Promise<ProviderAnswer>

const MAILBOX_PATH = '/gmail/v1/users/me/'

export function createApiRequest({ fetch, clock }: Host, config: MailpushConfig, tokens: AccessToken): RequestApi {
  const base = withoutTrailing(config.api_url, '/') + MAILBOX_PATH

  const attempt = (request: ApiRequest, token: Secret, accept: readonly number[]): Promise<ProviderAnswer> => {
    const { path, query = {}, ...rest } = request
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const search = given.length > 0 ? `?${new URLSearchParams(given)}` : ''
    return callProvider({
      ...rest,
      fetch,
      provider: 'mailpush',
      url: base + path.map(encodeURIComponent).join('/') + search,
      headers: { authorization: `Bearer ${token.reveal()}` },
      accept: [...(request.accept ?? []), ...accept],
      explain: (json) => refusalOf(json)?.message,
    })
  }

  return async (request) => {
    const token = await tokens.current(request.signal)
    let answer = await attempt(request, token, [401, 403])
    if (answer.status === 401) {
      const another = await tokens.renewed(token, request.signal)
      if (!another) throw new AppError('unavailable', 'mailpush answered 401 (is oauth_token valid?)')
      answer = await attempt(request, another, [403])
    }
    if (answer.status === 403) throw forbidden(answer, clock.nowMs())
    return answer
  }
}

const refusalSchema = v.object({
  error: v.object({ message: v.optional(v.string()), errors: v.optional(v.array(v.object({ reason: v.optional(v.string()) })), []) }),
})

const refusalOf = (json: unknown) => {
  const { success, output } = v.safeParse(refusalSchema, json)
  return success ? output.error : undefined
}

/** The API says 403 also for what is asked too often. */
function forbidden({ json, headers }: ProviderAnswer, nowMs: number): AppError {
  const refusal = refusalOf(json)
  const said = `mailpush answered 403${refusal?.message ? `: ${refusal.message.slice(0, 300)}` : ''}`
  if (!refusal?.errors.some(({ reason }) => /rateLimitExceeded|quotaExceeded|dailyLimitExceeded/i.test(reason ?? ''))) {
    return new AppError('forbidden', said)
  }
  const wait = retryAfterSecs(headers, nowMs)
  return new AppError('rate_limited', said, wait === undefined ? {} : { retryAfterSecs: wait })
}
