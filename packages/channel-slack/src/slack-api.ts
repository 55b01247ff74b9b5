/** Slack's Web API: one POST per method, form-encoded, for not every method reads JSON. */

import { callProvider, retryAfterSecs, withoutTrailing } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Host } from '@sluice/sdk'
import type { SlackConfig } from './config.ts'
import { mayBeDone, refusal } from './refusal.ts'

/** Objects and lists go out as JSON; what is undefined is left out. */
export type Args = Readonly<Record<string, string | number | boolean | object | undefined>>

export interface CallOptions {
  readonly signal: AbortSignal
  /** Default `bot_token`. */
  readonly tokenKey?: 'bot_token' | 'app_token'
  /** For large answers that are expected. */
  readonly answerBytesMax?: number
}

export interface SlackApi {
  /** As configured, ending in a slash. */
  readonly url: string
  /** Its answer. Throws as `Channel.send` does, `forbidden` for what is wrong with a token or the app. */
  call(method: string, args: Args, options: CallOptions): Promise<Members>
}

/** Slack's words are short and lower-case; anything else is not shown. */
const WORD = /^[a-z][a-z0-9_:.-]{0,79}$/

export function createSlackApi(host: Host, config: Pick<SlackConfig, 'api_url' | 'bot_token' | 'app_token'>): SlackApi {
  const url = `${withoutTrailing(config.api_url, '/')}/`
  return {
    url,
    async call(method, args, { tokenKey = 'bot_token', ...options }) {
      let failure: string | undefined
      const { json, headers } = await callProvider({
        fetch: host.fetch,
        provider: 'slack',
        url: `${url}${method}`,
        method: 'POST',
        headers: {
          authorization: `Bearer ${config[tokenKey].reveal().trim()}`,
          'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
        },
        body: encode(args),
        explain: (answer) => {
          failure = wordIn(members(answer))
          return failure
        },
        ...options,
      }).catch((error: unknown) => {
        // Slack says of these words that a part of the request may have been done.
        if (!(error instanceof AppError) || error.code !== 'unavailable' || !mayBeDone(failure)) throw error
        throw new AppError('upstream', error.message)
      })
      const answer = members(json)
      if (answer.ok === true) return answer
      const word = answer.ok === false ? wordIn(answer) : undefined
      if (!word) throw new AppError('upstream', `slack answered ${method} with something else than it documents`)
      throw refusal({ method, word, tokenKey, retryAfterSecs: retryAfterSecs(headers, host.clock.nowMs()) })
    },
  }
}

const wordIn = (answer: Members): string | undefined => WORD.exec(text(answer.error))?.[0]

function encode(args: Args): string {
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(args)) {
    if (value !== undefined) form.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
  }
  return form.toString()
}
