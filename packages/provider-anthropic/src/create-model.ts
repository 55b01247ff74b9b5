/** Creates models of the Messages API. A module of its own, so that it is loaded with the first model. */
import { AnthropicLanguageModel } from '@ai-sdk/anthropic/internal'
import type { ModelEndpoint } from '@sluice/provider-common'
import type { LanguageModel } from '@sluice/sdk'
import { cachingPrompts } from './prompt-cache.ts'
import { skippingUnknown } from './skip-unknown.ts'

export function createModel(
  { baseUrl, apiKey, model, headers, fetch }: ModelEndpoint,
  { promptCache }: { readonly promptCache: boolean },
): LanguageModel {
  const loaded = new AnthropicLanguageModel(model, {
    provider: 'anthropic.messages',
    supportsMessageThreads: true,
    baseURL: baseUrl,
    headers: () => ({ 'anthropic-version': '2023-06-01', 'x-api-key': apiKey, ...headers }),
    fetch: skippingUnknown(fetch),
  })
  return promptCache ? cachingPrompts(loaded) : loaded
}
