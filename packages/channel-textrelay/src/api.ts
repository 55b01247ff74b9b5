/** Requests to the partner API. */
import { bearer, type ProviderCall, urlUnder } from '@sluice/kit'
import { textAt, valueAt } from '@sluice/kit/foreign-json'
import type { Host, Secret } from '@sluice/sdk'

export interface Api {
  readonly fetch: typeof fetch
  readonly publicFetch: Host['publicFetch']
  readonly url: string
  readonly token: Secret
  /** Our own number. */
  readonly fromPhone: string
}

export const post = (api: Api, path: `/${string}`, body: object, signal: AbortSignal): ProviderCall => ({
  fetch: api.fetch,
  provider: 'textrelay',
  url: urlUnder(api.url, path),
  method: 'POST',
  headers: bearer(api.token),
  body,
  signal,
  explain,
})

/** Returns the explanation in a refusal. */
export function explain(json: unknown): string | undefined {
  const message = textAt(json, 'error.message')
  const code = valueAt(json, 'error.code')
  return typeof code === 'number' ? `${message} (code ${code})` : message || undefined
}
