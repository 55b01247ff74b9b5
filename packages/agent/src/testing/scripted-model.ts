/** A language model that plays scripted replies, as a whole or as a stream. */
import type { LanguageModel, ModelCallOptions, ModelFinishReason, ModelGenerateResult, ModelStreamPart } from '@sluice/sdk'

export interface Reply {
  readonly text?: string
  readonly thinking?: string
  readonly calls?: readonly { readonly id?: string; readonly name: string; readonly input: unknown }[]
  readonly finish?: ModelFinishReason['unified']
  /** The finish reason in the words of the provider. */
  readonly raw?: string
  /** Further parts, which come first. */
  readonly parts?: readonly ModelGenerateResult['content'][number][]
  /** The number of tokens; absent when the provider does not count them. */
  readonly usage?: { readonly input: number; readonly cached?: number; readonly output: number }
}

/** One step of the script: a reply, an error to throw, or a function that returns the reply. */
export type Step = Reply | Error | ((options: ModelCallOptions) => Reply | Promise<Reply>)

export interface ScriptedModel extends LanguageModel {
  /** The options of all calls so far, in order. */
  readonly asked: readonly ModelCallOptions[]
}

const finishOf = ({ finish, calls, raw }: Reply): ModelFinishReason => ({ unified: finish ?? (calls ? 'tool-calls' : 'stop'), raw })

const usageOf = ({ usage }: Reply): ModelGenerateResult['usage'] => ({
  inputTokens: { total: usage?.input, noCache: undefined, cacheRead: usage?.cached, cacheWrite: undefined },
  outputTokens: { total: usage?.output, text: undefined, reasoning: undefined },
})

const callsOf = (reply: Reply, turn: number) =>
  (reply.calls ?? []).map(({ id, name, input }, index) => ({
    type: 'tool-call' as const,
    toolCallId: id ?? `call-${turn}-${index}`,
    toolName: name,
    input: typeof input === 'string' ? input : JSON.stringify(input),
  }))

/** Plays the steps in order and then repeats the last one. */
export function scriptedModel(steps: readonly Step[], modelId = 'scripted-1'): ScriptedModel {
  const asked: ModelCallOptions[] = []
  const next = async (options: ModelCallOptions): Promise<Reply> => {
    asked.push(copied(options))
    const step = steps[Math.min(asked.length, steps.length) - 1] ?? {}
    if (step instanceof Error) throw step
    return typeof step === 'function' ? step(options) : step
  }
  return {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId,
    supportedUrls: {},
    asked,
    async doGenerate(options) {
      const reply = await next(options)
      const thinking = reply.thinking ? [{ type: 'reasoning' as const, text: reply.thinking }] : []
      const text = reply.text ? [{ type: 'text' as const, text: reply.text }] : []
      return {
        content: [...(reply.parts ?? []), ...thinking, ...text, ...callsOf(reply, asked.length)],
        finishReason: finishOf(reply),
        usage: usageOf(reply),
        warnings: [],
      }
    },
    async doStream(options) {
      const reply = await next(options)
      return { stream: ReadableStream.from(partsOf(reply, asked.length)) }
    },
  }
}

/** Copies the prompt, because the agent may change it after the call. */
const copied = (options: ModelCallOptions): ModelCallOptions => ({ ...options, prompt: structuredClone(options.prompt) })

function partsOf(reply: Reply, turn: number): ModelStreamPart[] {
  const words = (text: string) => text.split(/(?<= )/)
  return [
    { type: 'stream-start', warnings: [] },
    ...(reply.parts ?? []).flatMap(streamed),
    ...words(reply.thinking ?? '').map((delta): ModelStreamPart => ({ type: 'reasoning-delta', id: 'r', delta })),
    ...words(reply.text ?? '').map((delta): ModelStreamPart => ({ type: 'text-delta', id: 't', delta })),
    ...callsOf(reply, turn),
    { type: 'finish', finishReason: finishOf(reply), usage: usageOf(reply) },
  ]
}

/** A text or a thought becomes a block with one delta. Other parts are the same in a stream. */
function streamed(part: ModelGenerateResult['content'][number], index: number): ModelStreamPart[] {
  if (part.type !== 'text' && part.type !== 'reasoning') return [part]
  const id = `part-${index}`
  return [
    { type: `${part.type}-start`, id, ...(part.providerMetadata && { providerMetadata: part.providerMetadata }) },
    { type: `${part.type}-delta`, id, delta: part.text },
    { type: `${part.type}-end`, id },
  ]
}

/** A model whose stream is made of exactly these parts; an `Error` among them is what the stream fails with. */
export function streamingModel(parts: readonly (ModelStreamPart | Error)[]): LanguageModel {
  async function* play() {
    for (const part of parts) {
      if (part instanceof Error) throw part
      yield part
    }
  }
  return { ...scriptedModel([]), doStream: async () => ({ stream: ReadableStream.from(play()) }) }
}

/** A provider's refusal, as the wire libraries throw it. */
export const httpError = (statusCode: number, message = 'no', responseHeaders: Record<string, string> = {}): Error =>
  Object.assign(new Error(message), { name: 'AI_APICallError', statusCode, responseHeaders, isRetryable: statusCode >= 429 })

/** A connection that failed, as the wire libraries throw it. */
export const networkError = (code: string): Error =>
  Object.assign(new Error(`Cannot connect to API: ${code}`), {
    name: 'AI_APICallError',
    isRetryable: true,
    cause: Object.assign(new Error(code), { code }),
  })

/** Never answers, whatever the signal says. */
export const hang = (): Promise<Reply> => new Promise(() => undefined)
