/** Requests to the REST API of Mattermost, version 4. */
import { bearer, callProvider, type ProviderAnswer, retry, urlUnder } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Host } from '@sluice/sdk'
import type { MattermostConfig } from './config.ts'

export interface Call {
  readonly method: string
  /** Follows `/api/v4` in the URL. */
  readonly path: `/${string}`
  readonly body?: object
  readonly signal: AbortSignal
  /** Statuses that do not throw although they are not 2xx. */
  readonly accept?: readonly number[]
  readonly timeoutMs?: number
  readonly answerBytesMax?: number
}

/** How often a request that changes nothing is repeated while the server asks to wait. */
const READ_ATTEMPTS_MAX = 5

export class MattermostApi {
  readonly #host: Host
  readonly #config: MattermostConfig

  constructor(host: Host, config: MattermostConfig) {
    this.#host = host
    this.#config = config
  }

  get fetch(): typeof fetch {
    return this.#host.fetch
  }

  /** Returns the header that authorizes a request. */
  get authorization(): { readonly authorization: string } {
    return bearer(this.#config.bot_token)
  }

  get token(): string {
    return this.#config.bot_token.reveal().trim()
  }

  url(path: `/${string}`): string {
    return urlUnder(this.#config.url, `/api/v4${path}`)
  }

  /** Throws as `callProvider` does. */
  call({ path, ...call }: Call): Promise<ProviderAnswer> {
    return callProvider({ ...call, fetch: this.fetch, provider: 'mattermost', url: this.url(path), headers: this.authorization, explain })
  }

  /** Makes a request that changes nothing, and waits when the server limits the rate of requests. Throws as `callProvider` does. */
  async read(path: `/${string}`, signal: AbortSignal, answerBytesMax?: number): Promise<unknown> {
    const onFailure = (error: unknown, failures: number): void => {
      if (!(error instanceof AppError) || error.code !== 'rate_limited' || failures === READ_ATTEMPTS_MAX) throw error
    }
    const call = () => this.call({ method: 'GET', path, signal, ...(answerBytesMax !== undefined && { answerBytesMax }) })
    const answer = await retry(call, { clock: this.#host.clock, signal, onFailure })
    if (!answer) throw new AppError('aborted', 'The request to mattermost was cut off')
    return answer.json
  }
}

/** The server's text and the id of its error. Its `detailed_error` may quote internals and is left out. */
export function explain(json: unknown): string | undefined {
  const { id, message } = members(json)
  if (text(id) === '') return text(message) || undefined
  return text(message) === '' ? text(id) : `${text(message)} (${text(id)})`
}
