/** A chat completions model: the model of the AI SDK, with the reasoning and the limits of its service. */
import { mapStream, type StreamMapping } from '@sluice/provider-common'
import type { LanguageModel, ModelGenerateResult, ModelStreamPart } from '@sluice/sdk'
import { ORIGIN, type ReasoningOrigin, withReasoning } from './reasoning-member.ts'
import type { LearntLimits } from './request-limits.ts'
import { OPENING_TAG, ThinkTags } from './think-tags.ts'

export interface ChatModelOptions {
  readonly kind: string
  readonly limits: LearntLimits
}

/** Sends a request again when the endpoint has refused a member of it that the model can do without. */
export function chatModel(model: LanguageModel, { kind, limits }: ChatModelOptions): LanguageModel {
  const attempt = async <T>(call: () => PromiseLike<T>): Promise<T> => {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if (!limits.learn(error)) throw error
      }
    }
  }
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    async doGenerate(options) {
      const prompt = withReasoning(options.prompt, kind)
      return withSplitText(await attempt(() => model.doGenerate({ ...options, prompt })), kind)
    },
    async doStream(options) {
      const prompt = withReasoning(options.prompt, kind)
      const result = await attempt(() => model.doStream({ ...options, prompt }))
      return { ...result, stream: mapStream(result.stream, splitting(kind)) }
    },
  }
}

const tagged = (kind: string) => ({ [ORIGIN]: { kind, member: 'tags', details: [] } satisfies ReasoningOrigin })

function withSplitText(result: ModelGenerateResult, kind: string): ModelGenerateResult {
  const origin = result.providerMetadata?.[ORIGIN]
  const hasTag = result.content.some((part) => part.type === 'text' && part.text.trimStart().startsWith(OPENING_TAG))
  if (!origin && !hasTag) return result
  const content: ModelGenerateResult['content'] = []
  let isFirst = true
  for (const part of result.content) {
    if (part.type !== 'text' || !isFirst) {
      content.push(part)
      continue
    }
    isFirst = false
    const tags = new ThinkTags()
    const [begun, rest] = [tags.push(part.text), tags.end()]
    const reasoning = begun.reasoning + rest.reasoning
    if (reasoning !== '') content.push({ type: 'reasoning', text: reasoning, providerMetadata: tagged(kind) })
    content.push({ ...part, text: begun.text + rest.text })
  }
  if (!origin) return { ...result, content }
  const metadata = { [ORIGIN]: origin }
  const first = content.find((part) => part.type === 'reasoning')
  if (first) first.providerMetadata = metadata
  else content.unshift({ type: 'reasoning', text: '', providerMetadata: metadata })
  return { ...result, content }
}

/** The id of the reasoning block that the AI SDK uses for chat completions, and of ours. */
const REASONING_ID = 'reasoning-0'

/** Splits the first text of a stream, and gives the reasoning its origin when the stream ends. */
function splitting(kind: string): StreamMapping<ModelStreamPart, ModelStreamPart> {
  let tags: ThinkTags | undefined = new ThinkTags()
  /** The start of the first text, held back because its reasoning comes first. */
  let start: ModelStreamPart | undefined
  return {
    push(part, emit) {
      const pass = ({ reasoning, text }: { reasoning: string; text: string }, id: string) => {
        if (reasoning !== '') emit({ type: 'reasoning-delta', id: REASONING_ID, delta: reasoning, providerMetadata: tagged(kind) })
        if (text === '') return
        if (start) emit(start)
        start = undefined
        emit({ type: 'text-delta', id, delta: text })
      }
      const origin = part.type === 'finish' ? part.providerMetadata?.[ORIGIN] : undefined
      if (origin) emit({ type: 'reasoning-end', id: REASONING_ID, providerMetadata: { [ORIGIN]: origin } })
      if (!tags || (part.type !== 'text-start' && part.type !== 'text-delta' && part.type !== 'text-end')) emit(part)
      else if (part.type === 'text-start') start = part
      else if (part.type === 'text-delta') pass(tags.push(part.delta), part.id)
      else {
        pass(tags.end(), part.id)
        tags = undefined
        if (start) start = undefined
        else emit(part)
      }
    },
  }
}
