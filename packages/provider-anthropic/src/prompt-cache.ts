/** Marks a conversation for the prompt cache of Anthropic: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching */
import type { LanguageModel, ModelMessage, ModelPrompt } from '@sluice/sdk'

/** The cache keeps everything up to a mark for five minutes after its last use. */
const MARK = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const

/** Makes a model that marks each prompt: after the tools and the system prompt, and after the newest message. */
export const cachingPrompts = (model: LanguageModel): LanguageModel => ({
  specificationVersion: 'v4',
  provider: model.provider,
  modelId: model.modelId,
  supportedUrls: model.supportedUrls,
  doGenerate: (options) => model.doGenerate({ ...options, prompt: marked(options.prompt) }),
  doStream: (options) => model.doStream({ ...options, prompt: marked(options.prompt) }),
})

function marked(prompt: ModelPrompt): ModelPrompt {
  const last = prompt.length - 1
  return prompt.map(
    (message, at): ModelMessage =>
      message.role === 'system' || at === last ? { ...message, providerOptions: { ...message.providerOptions, ...MARK } } : message,
  )
}
