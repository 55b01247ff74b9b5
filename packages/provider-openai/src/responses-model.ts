/** Loads models of the OpenAI Responses API. A module of its own, so that the rest of the package is not in the bundle. */
import { OpenAIResponsesLanguageModel } from '@ai-sdk/openai/internal'
import type { ModelEndpoint } from '@sluice/kit'
import type { LanguageModel } from '@sluice/sdk'

/** The service keeps no reply: reasoning comes back encrypted and is sent again with the next request of the turn. */
const providerOptions = { openai: { store: false } }

export function responsesModel({ baseUrl, apiKey, model, headers, fetch }: ModelEndpoint): LanguageModel {
  const responses = new OpenAIResponsesLanguageModel(model, {
    provider: 'openai.responses',
    url: ({ path }) => `${baseUrl}${path}`,
    headers: () => ({ authorization: `Bearer ${apiKey}`, ...headers }),
    fetch,
  })
  return {
    specificationVersion: 'v4',
    provider: responses.provider,
    modelId: responses.modelId,
    supportedUrls: responses.supportedUrls,
    doGenerate: (options) => responses.doGenerate({ ...options, providerOptions }),
    doStream: (options) => responses.doStream({ ...options, providerOptions }),
  }
}
