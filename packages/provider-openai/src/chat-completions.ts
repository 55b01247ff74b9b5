/** Builds providers for services with the OpenAI chat completions API. */
import { type ModelEndpoint, modelEndpoint } from '@sluice/provider-common'
import { type LanguageModel, type LoadOptions, type Provider, type ProviderSettings, Secret } from '@sluice/sdk'
import type { Preset } from './presets.ts'

/** The model in the settings of a list, which is asked for before a model is chosen. */
const NO_MODEL = 'none'

/** Checks and completes settings. A server at the operator's own `base_url` may need no key. */
export function endpointOf(settings: ProviderSettings, { baseUrl, keyVariable }: Preset, plainFetch: typeof fetch): ModelEndpoint {
  const keyRequired = keyVariable !== undefined && settings.base_url === undefined
  return modelEndpoint(settings, { baseUrl: baseUrl ?? '', fetch: plainFetch, keyRequired })
}

/**
 * Creates the provider of a service with chat completions, and with the Responses API where the service has it. Its models never retry a
 * request that failed; the agent does.
 */
export function chatCompletions(kind: string, preset: Preset, detect?: Provider['detect']): Provider {
  return {
    kinds: [kind],
    usual: { ...(preset.baseUrl && { baseUrl: preset.baseUrl }), ...(preset.keyVariable && { keyVariable: preset.keyVariable }) },
    detect: detect ?? ((env, wanted) => (wanted === kind ? keyOf(kind, preset, env) : undefined)),
    media: () => preset.media ?? [],
    check: (settings) => void endpointOf(settings, preset, fetch),
    async models(settings, { fetch, signal }) {
      const { listModels } = await import('@sluice/provider-common')
      const endpoint = endpointOf({ ...settings, model: NO_MODEL }, preset, fetch)
      const headers = endpoint.apiKey === '' ? {} : { authorization: `Bearer ${endpoint.apiKey}` }
      const models = await listModels(endpoint, { headers, signal })
      const { localWindows } = await import('./local-windows.ts')
      const windowOf = await localWindows(kind, endpoint, { headers, signal, model: settings.model ?? '' })
      return models.map((listed) => {
        const contextTokens = windowOf(listed.id)
        return contextTokens === undefined ? listed : { ...listed, contextTokens }
      })
    },
    async load(settings, options) {
      const endpoint = endpointOf(settings, preset, options.fetch)
      if (!preset.hasResponses || !endpoint.baseUrl.endsWith('/openai/v1')) return loadChatModel(kind, preset, endpoint, options)
      const { responsesModel } = await import('./responses-model.ts')
      return responsesModel(endpoint)
    },
  }
}

const keyOf = (kind: string, { keyVariable = '' }: Preset, env: Readonly<Record<string, string | undefined>>) => {
  const key = env[keyVariable]
  return key ? { kind, api_key: new Secret(key) } : undefined
}

/** Loads the modules of chat completions with the first model. */
export async function loadChatModel(kind: string, preset: Preset, endpoint: ModelEndpoint, options: LoadOptions): Promise<LanguageModel> {
  const { createChatModel } = await import('./create-chat-model.ts')
  return createChatModel(kind, preset, endpoint, options)
}
