/** Loads models of the OpenAI Responses API. A module of its own, so that the rest of the package is not in the bundle. */
import { OpenAIResponsesLanguageModel } from '@ai-sdk/openai/internal'
import { type ModelEndpoint, mapStream } from '@sluice/provider-common'
import { type LanguageModel, type ModelCallOptions, type ModelFinishReason, type ModelStreamPart, promptCacheKeyIn } from '@sluice/sdk'
import { keepingKnownItems } from './known-items.ts'

/** The service keeps no reply: reasoning comes back encrypted and is sent again with the next request of the turn. */
const optionsOf = (options: ModelCallOptions) => {
  const promptCacheKey = promptCacheKeyIn(options)
  return { openai: { store: false, ...(promptCacheKey !== undefined && { promptCacheKey }) } }
}

export function responsesModel({ baseUrl, apiKey, model, headers, fetch }: ModelEndpoint): LanguageModel {
  const responses = new OpenAIResponsesLanguageModel(model, {
    provider: 'openai.responses',
    url: ({ path }) => `${baseUrl}${path}`,
    headers: () => ({ authorization: `Bearer ${apiKey}`, ...headers }),
    fetch: keepingKnownItems(fetch),
  })
  return {
    specificationVersion: 'v4',
    provider: responses.provider,
    modelId: responses.modelId,
    supportedUrls: responses.supportedUrls,
    async doGenerate(options) {
      const result = await responses.doGenerate({ ...options, providerOptions: optionsOf(options) })
      return { ...result, finishReason: withRefusal(result.finishReason) }
    },
    async doStream(options) {
      const result = await responses.doStream({ ...options, providerOptions: optionsOf(options) })
      const push = (part: ModelStreamPart, emit: (part: ModelStreamPart) => void) =>
        emit(part.type === 'finish' ? { ...part, finishReason: withRefusal(part.finishReason) } : part)
      return { ...result, stream: mapStream(result.stream, { push }) }
    },
  }
}

/** The API gives a reply that the content filter cuts a reason, and a refusal none. */
const withRefusal = (reason: ModelFinishReason): ModelFinishReason =>
  reason.unified === 'content-filter' && reason.raw === undefined ? { ...reason, raw: 'refusal' } : reason
