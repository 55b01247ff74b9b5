/** Builds providers for services with the OpenAI chat completions API. */
import { listModels, modelEndpoint } from '@sluice/kit'
import type { Provider, ProviderSettings } from '@sluice/sdk'

export interface ChatCompletionsService {
  /** The base URL when the settings name none. */
  readonly baseUrl: string
  /** Whether requests to `baseUrl` need a key; default false. A server at the operator's own `base_url` may need none. */
  readonly isKeyRequired?: boolean
  readonly detect: NonNullable<Provider['detect']>
}

/** Creates the provider of one kind. Its models never retry a request; the agent does. */
export function chatCompletions(kind: string, { baseUrl, isKeyRequired = false, detect }: ChatCompletionsService): Provider {
  const endpointOf = (settings: ProviderSettings, plainFetch: typeof fetch) =>
    modelEndpoint(settings, { baseUrl, fetch: plainFetch, keyRequired: isKeyRequired && settings.base_url === undefined })
  return {
    kinds: [kind],
    detect,
    check: (settings) => void endpointOf(settings, fetch),
    models(settings, { fetch, signal }) {
      const endpoint = endpointOf(settings, fetch)
      const headers = endpoint.apiKey === '' ? {} : { authorization: `Bearer ${endpoint.apiKey}` }
      return listModels(endpoint, { headers, signal })
    },
    async load(settings, options) {
      const { baseUrl: baseURL, apiKey, model, headers, fetch } = endpointOf(settings, options.fetch)
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      return createOpenAICompatible({ name: kind, baseURL, apiKey, headers, fetch, includeUsage: true }).languageModel(model)
    },
  }
}
