/** Providers that speak chat completions. */
import { listModels, modelEndpoint } from '@sluice/kit'
import type { Provider, ProviderSettings } from '@sluice/sdk'

/** A provider of one kind. `baseUrl` is used where the settings name none; `keyRequired` holds for that address alone. */
export function chatCompletions(
  kind: string,
  {
    baseUrl,
    keyRequired = false,
    detect,
  }: { readonly baseUrl: string; readonly keyRequired?: boolean } & Required<Pick<Provider, 'detect'>>,
): Provider {
  const endpointOf = (settings: ProviderSettings, plainFetch: typeof fetch) =>
    modelEndpoint(settings, { baseUrl, fetch: plainFetch, keyRequired: keyRequired && settings.base_url === undefined })
  return {
    kinds: [kind],
    detect,
    check: (settings) => void endpointOf(settings, fetch),
    models(settings, { fetch, signal }) {
      const endpoint = endpointOf(settings, fetch)
      const headers = endpoint.apiKey === '' ? {} : { authorization: `Bearer ${endpoint.apiKey}` }
      return listModels(endpoint, { headers, signal })
    },
    // The model never retries; the caller does.
    async load(settings, options) {
      const { baseUrl: baseURL, apiKey, model, headers, fetch } = endpointOf(settings, options.fetch)
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      return createOpenAICompatible({ name: kind, baseURL, apiKey, headers, fetch, includeUsage: true }).languageModel(model)
    },
  }
}
