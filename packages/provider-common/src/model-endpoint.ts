/** The HTTP endpoint of a model provider: checks its settings and keeps its key out of errors. */

import { readHead } from '@sluice/kit'
import { withoutTrailing } from '@sluice/kit/without-trailing'
import type { ProviderSettings } from '@sluice/sdk'
import { AppError, withoutSecrets } from '@sluice/sdk'

/** Complete and valid settings. */
export interface ModelEndpoint {
  /** The URL without a slash at the end. */
  readonly baseUrl: string
  /** Empty when no key is sent. */
  readonly apiKey: string
  readonly model: string
  readonly headers: Readonly<Record<string, string>>
  /** Follows no redirect, so the key reaches only the configured address, and removes the key from the bodies of errors. */
  readonly fetch: typeof fetch
}

/** The longest body of an error; the rest is dropped. */
const ERROR_BYTES_MAX = 65_536

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const HEADER_VALUE = /^[\x20-\x7e]*$/

const invalid = (key: string, what: string): AppError => new AppError('config_invalid', `[provider] ${key} ${what}`)

/** Checks and completes settings. Throws `config_invalid` with the TOML key and without its value. */
export function modelEndpoint(
  settings: ProviderSettings,
  /** `baseUrl` is empty for a service that has no address of its own. */
  options: { readonly baseUrl: string; readonly fetch: typeof fetch; readonly keyRequired?: boolean },
): ModelEndpoint {
  const apiKey = settings.api_key?.reveal().trim() ?? ''
  if (apiKey === '' && options.keyRequired) throw invalid('api_key', `is missing: "${settings.kind}" demands a key`)
  // The error of `fetch` would quote a value that is not valid in a header.
  if (!HEADER_VALUE.test(apiKey)) throw invalid('api_key', 'has characters that no HTTP header can carry')
  const headers = Object.fromEntries(
    Object.entries(settings.headers ?? {}).map(([name, value]) => [name, typeof value === 'string' ? value : value.reveal().trim()]),
  )
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name) || !HEADER_VALUE.test(value))
      throw invalid('headers', 'has a name or a value that no HTTP header can carry')
  }
  const model = settings.model?.trim() ?? ''
  if (model === '') throw invalid('model', `is missing: name the model that "${settings.kind}" shall use`)
  const url = settings.base_url ?? options.baseUrl
  if (url === '') throw invalid('base_url', `is missing: "${settings.kind}" has another address for each account or region`)
  const baseUrl = plainUrl(url)
  return { baseUrl, apiKey, model, headers, fetch: guard(adding(options.fetch, settings.options), [apiKey, ...Object.values(headers)]) }
}

function plainUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) throw invalid('base_url', 'is not an http or https URL')
  if (url.username || url.password) throw invalid('base_url', 'may not hold a user name or password: use api_key or headers')
  if (url.search || url.hash) throw invalid('base_url', 'may not hold a query or a fragment')
  return withoutTrailing(url.href, '/')
}

/** Adds the operator's members to the JSON body of each request. */
function adding(plainFetch: typeof fetch, options: ProviderSettings['options']): typeof fetch {
  if (options === undefined || Object.keys(options).length === 0) return plainFetch
  return (input, init) =>
    plainFetch(input, typeof init?.body === 'string' ? { ...init, body: JSON.stringify(merged(JSON.parse(init.body), options)) } : init)
}

/** Merges tables. Any other value of `changes` replaces the one in `base`. */
function merged(base: unknown, changes: unknown): unknown {
  if (!isTable(base) || !isTable(changes)) return changes
  return { ...base, ...Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, merged(base[name], value)])) }
}

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const guard =
  (plainFetch: typeof fetch, secrets: readonly string[]): typeof fetch =>
  async (input, init) => {
    const response = await plainFetch(input, { ...init, redirect: 'manual' })
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    const isNoStream = isJson === true && asksForStream(init)
    if ((response.ok && !isNoStream) || !response.body) return response
    const text = withoutSecrets(new TextDecoder().decode(await readHead(response, ERROR_BYTES_MAX)), secrets)
    if (response.ok) throw new NoStreamError(text)
    const { status, statusText, headers } = response
    return new Response(text, { status, statusText, headers })
  }

const asksForStream = (init: RequestInit | undefined): boolean => typeof init?.body === 'string' && init.body.includes('"stream":true')

/**
 * A whole JSON body that answers a request for a stream with status 200. Gateways report errors so. It has the members of an error
 * of the AI SDK, which would read the body as an empty stream.
 */
class NoStreamError extends Error {
  override readonly name = 'AI_NoStreamError'
  readonly statusCode = 200
  readonly isRetryable = false
  readonly responseBody: string

  constructor(responseBody: string) {
    super('the endpoint answers a request for a stream with a JSON body')
    this.responseBody = responseBody
  }
}
