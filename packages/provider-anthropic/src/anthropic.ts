/** The provider `[provider] kind = "anthropic"`: the Messages API of Anthropic, or of a compatible server at `base_url`. */

import { withoutTrailing } from '@sluice/kit'
import { type ModelEndpoint, modelEndpoint } from '@sluice/provider-common'
import { type Provider, type ProviderSettings, Secret } from '@sluice/sdk'

const ROOT_URL = 'https://api.anthropic.com'
const BASE_URL = `${ROOT_URL}/v1`
/** The model used when the environment has a key and names no model. */
const DETECTED_MODEL = 'claude-haiku-5-5'

function endpointOf(settings: ProviderSettings, plainFetch: typeof fetch): ModelEndpoint {
  const endpoint = modelEndpoint(settings, { baseUrl: BASE_URL, fetch: plainFetch, keyRequired: true })
  return endpoint.baseUrl === ROOT_URL ? { ...endpoint, baseUrl: BASE_URL } : endpoint
}

export const anthropic: Provider = {
  kinds: ['anthropic'],
  usual: { baseUrl: BASE_URL, keyVariable: 'ANTHROPIC_API_KEY', model: DETECTED_MODEL },
  detect({ ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_MODEL }) {
    if (!ANTHROPIC_API_KEY) return undefined
    return {
      kind: 'anthropic',
      base_url: ANTHROPIC_BASE_URL ? versionedUrl(ANTHROPIC_BASE_URL) : undefined,
      api_key: new Secret(ANTHROPIC_API_KEY),
      model: ANTHROPIC_MODEL || DETECTED_MODEL,
    }
  },
  media: () => ['image', 'pdf'],
  check: (settings) => void endpointOf(settings, fetch),
  async models(settings, { fetch, signal }) {
    const { listModels } = await import('@sluice/provider-common')
    // The list is asked for before a model is chosen.
    const endpoint = endpointOf({ ...settings, model: 'none' }, fetch)
    const headers = { 'x-api-key': endpoint.apiKey, 'anthropic-version': '2023-06-01' }
    // A page holds 20 models by default and at most 1000: https://docs.anthropic.com/en/api/models-list
    return listModels(endpoint, { headers, query: '?limit=1000', signal })
  },
  async load(settings, options) {
    const endpoint = endpointOf(settings, options.fetch)
    const { createModel } = await import('./create-model.ts')
    return createModel(endpoint, { promptCache: settings.prompt_cache !== false })
  },
}

/** `ANTHROPIC_BASE_URL` is the root of the service, as for Anthropic's own clients; `base_url` includes the version before `/messages`. */
const versionedUrl = (root: string): string => {
  const url = withoutTrailing(root, '/')
  return url.endsWith('/v1') ? url : `${url}/v1`
}
