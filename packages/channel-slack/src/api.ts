/** Calls of Slack's Web API. Each method is one form-encoded POST, because some methods do not accept JSON. */
import { callProvider, retryAfterSecs, withoutTrailing } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Clock, type Host } from '@sluice/sdk'
import type { SlackConfig } from './config.ts'
import { isUncertain, refusal } from './refusal.ts'

/** Objects and lists are sent as JSON, undefined values are omitted. */
export type Args = Readonly<Record<string, string | number | boolean | object | undefined>>

/** The configuration key of the token that a request carries. */
export type TokenKey = 'bot_token' | 'app_token'

export interface CallOptions {
  readonly signal: AbortSignal
  /** Default `bot_token`. */
  readonly tokenKey?: TokenKey
  /** The largest answer, for methods whose answers exceed the default of `callProvider`. */
  readonly answerBytesMax?: number
}

/** Slack's error words are short and lower-case; any other text is not shown. */
const WORD = /^[a-z][a-z0-9_:.-]{0,79}$/

export class SlackApi {
  readonly fetch: typeof fetch
  /** The configured base URL, ending in a slash. */
  readonly url: string
  readonly #clock: Clock
  readonly #config: SlackConfig

  constructor({ fetch, clock }: Host, config: SlackConfig) {
    this.fetch = fetch
    this.url = `${withoutTrailing(config.api_url, '/')}/`
    this.#clock = clock
    this.#config = config
  }

  /** Returns the value of the `authorization` header. */
  authorization(tokenKey: TokenKey): string {
    return `Bearer ${this.#config[tokenKey].reveal().trim()}`
  }

  /** Returns Slack's answer. Throws as `Channel.send` does, and `forbidden` when a token or the app must be changed. */
  async call(method: string, args: Args, { tokenKey = 'bot_token', ...options }: CallOptions): Promise<Members> {
    let word: string | undefined
    const { json, headers } = await callProvider({
      fetch: this.fetch,
      provider: 'slack',
      url: `${this.url}${method}`,
      method: 'POST',
      headers: {
        authorization: this.authorization(tokenKey),
        'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
      },
      body: encode(args),
      explain: (answer) => {
        word = wordIn(members(answer))
        return word
      },
      ...options,
    }).catch((error: unknown) => {
      // For these words Slack documents that a part of the request may have been done.
      if (!(error instanceof AppError) || error.code !== 'unavailable' || !isUncertain(word)) throw error
      throw new AppError('upstream', error.message)
    })
    const answer = members(json)
    if (answer.ok === true) return answer
    const refused = answer.ok === false ? wordIn(answer) : undefined
    if (!refused) throw new AppError('upstream', `slack answered ${method} in a form that it does not document`)
    throw refusal(method, refused, tokenKey, retryAfterSecs(headers, this.#clock.nowMs()))
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

const SLACK_HOST = /^(?:[\w-]+\.)*(?:slack\.com|slack-edge\.com|slack-files\.com|slack-gov\.com)$/
const ENCRYPTED = ['https:', 'wss:']

/**
 * Whether a token, a file or the socket may go to an address: an encrypted address of Slack or GovSlack, or the host of the
 * configured `api_url`, unencrypted only if `api_url` is. False for an address with a user name, which would replace the token.
 */
export function isSlackUrl(address: string, apiUrl: string): boolean {
  const url = URL.parse(address)
  const api = URL.parse(apiUrl)
  if (!url || !api || url.username !== '' || url.password !== '') return false
  const isEncrypted = ENCRYPTED.includes(url.protocol)
  if (url.host === api.host) return isEncrypted || (api.protocol === 'http:' && ['http:', 'ws:'].includes(url.protocol))
  return isEncrypted && SLACK_HOST.test(url.host)
}
