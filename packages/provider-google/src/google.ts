/** The provider `[provider] kind = "google"`: the Gemini API of Google, or of a compatible server at `base_url`. */
import { modelEndpoint } from '@sluice/provider-common'
import { MEDIA_KINDS, type Provider, type ProviderSettings, Secret } from '@sluice/sdk'

const BASE_URL = 'https://generativelanguage.googleapis.com/v1beta'
/** The header of the key: https://ai.google.dev/api#authentication */
const KEY_HEADER = 'x-goog-api-key'

const endpointOf = (settings: ProviderSettings, plainFetch: typeof fetch) =>
  modelEndpoint(settings, { baseUrl: BASE_URL, fetch: plainFetch, keyRequired: true })

export const google: Provider = {
  kinds: ['google'],
  usual: { baseUrl: BASE_URL, keyVariable: 'GEMINI_API_KEY' },
  // Keys of this name are common for other services of Google too, so the variable alone does not choose the provider.
  detect: ({ GEMINI_API_KEY }, wanted) =>
    wanted === 'google' && GEMINI_API_KEY ? { kind: 'google', api_key: new Secret(GEMINI_API_KEY) } : undefined,
  media: () => MEDIA_KINDS,
  check: (settings) => void endpointOf(settings, fetch),
  async models(settings, { fetch, signal }) {
    const { listModels } = await import('@sluice/provider-common')
    // The list is asked for before a model is chosen.
    const endpoint = endpointOf({ ...settings, model: 'none' }, fetch)
    // A page holds 50 models by default and at most 1000: https://ai.google.dev/api/models#method:-models.list
    return listModels(endpoint, { headers: { [KEY_HEADER]: endpoint.apiKey }, query: '?pageSize=1000', signal })
  },
  async load(settings, options) {
    const { apiKey, headers, ...endpoint } = endpointOf(settings, options.fetch)
    const { createModel } = await import('./create-model.ts')
    return createModel({ ...endpoint, headers: { [KEY_HEADER]: apiKey, ...headers } })
  },
}
