/** Creates models of the Messages API. A module of its own, so that it is loaded with the first model. */
import { createAnthropic } from '@ai-sdk/anthropic'
import type { ModelEndpoint } from '@sluice/kit'
import type { LanguageModel } from '@sluice/sdk'
import { cachingPrompts } from './prompt-cache.ts'
import { skippingUnknown } from './skip-unknown.ts'

export function createModel(
  { baseUrl, apiKey, model, headers, fetch }: ModelEndpoint,
  { promptCache }: { readonly promptCache: boolean },
): LanguageModel {
  const loaded = createAnthropic({ baseURL: baseUrl, apiKey, headers: { ...headers }, fetch: skippingUnknown(fetch) }).languageModel(model)
  return promptCache ? cachingPrompts(loaded) : loaded
}
