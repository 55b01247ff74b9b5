/** Requests to the Messaging API. */
import { bearer, callProvider, type ProviderAnswer, urlUnder } from '@sluice/kit'
import { list, members, text } from '@sluice/kit/foreign-json'
import type { Host } from '@sluice/sdk'
import type { LineConfig } from './config.ts'

/** LINE serves files from a host of its own. */
const API_HOST = 'api.line.me'
const DATA_URL = 'https://api-data.line.me'
const DETAILS_MAX = 3

export interface Call {
  readonly path: `/${string}`
  readonly body: object
  readonly signal: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
  /** Statuses that do not throw although they are not 2xx. */
  readonly accept?: readonly number[]
}

export class LineApi {
  readonly #host: Host
  readonly #config: LineConfig

  constructor(host: Host, config: LineConfig) {
    this.#host = host
    this.#config = config
  }

  get host(): Host {
    return this.#host
  }

  get authorization(): { readonly authorization: string } {
    return bearer(this.#config.channel_access_token)
  }

  /** Returns a URL of the API that has the files of messages. */
  dataUrl(path: `/${string}`): string {
    const { api_url } = this.#config
    return urlUnder(new URL(api_url).host === API_HOST ? DATA_URL : api_url, path)
  }

  /** Makes one GET request, and returns its answer. Throws as `callProvider` does. */
  async get(path: `/${string}`, signal: AbortSignal): Promise<unknown> {
    const { fetch } = this.#host
    const url = urlUnder(this.#config.api_url, path)
    const { json } = await callProvider({ fetch, provider: 'line', method: 'GET', url, headers: this.authorization, explain, signal })
    return json
  }

  /** Makes one POST request. Throws as `callProvider` does. */
  post({ path, headers = {}, ...call }: Call): Promise<ProviderAnswer> {
    return callProvider({
      ...call,
      fetch: this.#host.fetch,
      provider: 'line',
      method: 'POST',
      url: urlUnder(this.#config.api_url, path),
      headers: { ...this.authorization, ...headers },
      explain,
    })
  }
}

/** Returns LINE's text and the first properties that it complains about. */
export function explain(json: unknown): string | undefined {
  const { message, details } = members(json)
  const properties = list(details)
    .slice(0, DETAILS_MAX)
    .map(members)
    .map((detail) => `${text(detail.property)}: ${text(detail.message)}`)
  return [text(message), ...properties].filter((part) => part !== '' && part !== ': ').join('; ') || undefined
}
