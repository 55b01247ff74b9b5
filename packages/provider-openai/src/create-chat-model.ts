/** Creates models of the chat completions API. A module of its own, so that it is loaded with the first model. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { ModelEndpoint } from '@sluice/provider-common'
import type { LanguageModel, LoadOptions } from '@sluice/sdk'
import { chatModel } from './chat-model.ts'
import { withFinishReason } from './finish-reason.ts'
import type { Preset } from './presets.ts'
import { ORIGIN, ReasoningWatch, withPlaceholders } from './reasoning-member.ts'
import { LearntLimits } from './request-limits.ts'

export function createChatModel(
  kind: string,
  { limit, needsReasoning, refuses = [] }: Preset,
  { baseUrl, apiKey, model, headers, fetch }: ModelEndpoint,
  { onLimit }: LoadOptions,
): LanguageModel {
  const limits = new LearntLimits((label) => onLimit?.(label))
  const provider = createOpenAICompatible({
    name: kind,
    baseURL: baseUrl,
    apiKey,
    headers,
    fetch: withFinishReason(fetch),
    includeUsage: true,
    transformRequestBody({ max_tokens, ...body }) {
      const sent: Record<string, unknown> = max_tokens === undefined ? body : { ...body, [limit ?? 'max_tokens']: max_tokens }
      for (const name of refuses) delete sent[name]
      return limits.apply(needsReasoning ? withPlaceholders(sent) : sent)
    },
    metadataExtractor: {
      async extractMetadata({ parsedBody }) {
        const watch = new ReasoningWatch()
        watch.see(parsedBody)
        return metadataOf(watch, kind)
      },
      createStreamExtractor() {
        const watch = new ReasoningWatch()
        return { processChunk: (chunk) => watch.see(chunk), buildMetadata: () => metadataOf(watch, kind) }
      },
    },
  })
  return chatModel(provider.languageModel(model), { kind, limits })
}

const metadataOf = (watch: ReasoningWatch, kind: string) => {
  const origin = watch.origin(kind)
  return origin && { [ORIGIN]: origin }
}
