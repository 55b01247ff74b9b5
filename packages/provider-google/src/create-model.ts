/** Creates models of the Gemini API. A module of its own, so that it is loaded with the first model. */
import { randomUUID } from 'node:crypto'
import { GoogleLanguageModel } from '@ai-sdk/google/internal'
import { type ModelEndpoint, mapStream, type StreamMapping } from '@sluice/provider-common'
import type { LanguageModel, ModelStreamPart } from '@sluice/sdk'

export function createModel({ baseUrl, model, headers, fetch }: Omit<ModelEndpoint, 'apiKey'>): LanguageModel {
  const gemini = new GoogleLanguageModel(model, {
    provider: 'google.generative-ai',
    baseURL: baseUrl,
    headers,
    fetch,
    // Only some models name their calls.
    generateId: () => `call_${randomUUID()}`,
  })
  return {
    specificationVersion: 'v4',
    provider: gemini.provider,
    modelId: gemini.modelId,
    supportedUrls: gemini.supportedUrls,
    doGenerate: (options) => gemini.doGenerate(options),
    async doStream(options) {
      const result = await gemini.doStream(options)
      return { ...result, stream: mapStream(result.stream, droppingMadeUpEnds) }
    },
  }
}

/** The SDK reports an end without a reason for a stream that broke off, and the agent would take the beginning for the answer. */
const droppingMadeUpEnds: StreamMapping<ModelStreamPart, ModelStreamPart> = {
  push(part, emit) {
    if (part.type !== 'finish' || part.finishReason.raw !== undefined) emit(part)
  },
}
