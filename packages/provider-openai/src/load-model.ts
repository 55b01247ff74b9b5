/** Loads the chat-completions wire format and makes a model of an endpoint. */
import { type LanguageModel, modelEndpoint, type ProviderSettings } from '@sluice/sdk'

/** Throws `config_invalid` for settings that cannot work. The model never retries; that is the caller's. */
export async function loadModel(settings: ProviderSettings, defaults: { baseUrl: string; fetch: typeof fetch }): Promise<LanguageModel> {
  const { baseUrl, apiKey, model, headers, fetch } = modelEndpoint(settings, defaults)
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
  return createOpenAICompatible({ name: settings.kind, baseURL: baseUrl, apiKey, headers, fetch, includeUsage: true }).languageModel(model)
}
