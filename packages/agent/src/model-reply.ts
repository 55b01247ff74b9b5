/** Reads one reply of a model, as a whole or streamed. */
import { randomUUID } from 'node:crypto'
import type { LanguageModel, ModelCallOptions, ModelFinishReason, ModelMessage, ModelStreamPart, ModelUsage } from '@sluice/sdk'
import type { Cancellation } from './cancellation.ts'

export interface ToolCall {
  /** The id: not empty and unique within the reply. */
  readonly id: string
  /** The name in letters, digits, `_` and `-`, which every provider accepts in a history. */
  readonly name: string
  /** The JSON of the model, unchanged. */
  readonly input: string
}

export type AssistantPart = Extract<ModelMessage, { role: 'assistant' }>['content'][number]

export interface ModelReply {
  readonly text: string
  readonly calls: readonly ToolCall[]
  /** The message for the next call of the same turn, with thinking and provider metadata. */
  readonly content: AssistantPart[]
  readonly finish: ModelFinishReason['unified']
  readonly usage: ModelUsage
}

/** Receives the pieces of a streamed reply. */
export type HearDelta = (type: 'text' | 'thinking', delta: string) => void

/** A longer reply is an error: no person reads a text of this length. */
const REPLY_CHARS_MAX = 8_000_000
const NAME_CHARS_MAX = 64

/** Requests the whole reply at once. */
export async function generateReply(model: LanguageModel, options: ModelCallOptions, cancellation: Cancellation): Promise<ModelReply> {
  const { content, finishReason, usage } = await cancellation.race(model.doGenerate(options))
  const draft = new Draft()
  for (const [index, part] of content.entries()) {
    const options = part.providerMetadata
    if (part.type === 'text') draft.extend('text', `${index}`, part.text, options)
    else if (part.type === 'reasoning') draft.extend('reasoning', `${index}`, part.text, options)
    else if (part.type === 'tool-call') draft.call(part)
  }
  return draft.finish(finishReason.unified, usage)
}

/** Requests a streamed reply. A stream that breaks off ends as `interrupted`; one that reports an error throws it. */
export async function streamReply(
  model: LanguageModel,
  options: ModelCallOptions,
  cancellation: Cancellation,
  { hear, alive }: { readonly hear: HearDelta; readonly alive: () => void },
): Promise<ModelReply> {
  const { stream } = await cancellation.race(model.doStream(options))
  const reader = stream.getReader()
  const draft = new Draft()
  try {
    for (;;) {
      const { done, value } = await cancellation.race(reader.read())
      if (done) return draft.finish('interrupted', NO_USAGE)
      alive()
      if (value.type === 'error') throw value.error
      if (value.type === 'finish') return draft.finish(value.finishReason.unified, value.usage)
      addPart(draft, value, hear)
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

function addPart(draft: Draft, part: ModelStreamPart, hear: HearDelta): void {
  switch (part.type) {
    case 'text-start':
    case 'text-end':
      draft.extend('text', part.id, '', part.providerMetadata)
      break
    case 'reasoning-start':
    case 'reasoning-end':
      draft.extend('reasoning', part.id, '', part.providerMetadata)
      break
    case 'text-delta':
      draft.extend('text', part.id, part.delta, part.providerMetadata)
      if (part.delta !== '') hear('text', part.delta)
      break
    case 'reasoning-delta':
      draft.extend('reasoning', part.id, part.delta, part.providerMetadata)
      if (part.delta !== '') hear('thinking', part.delta)
      break
    case 'tool-call':
      draft.call(part)
  }
}

const NO_USAGE: ModelUsage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
}

type Metadata = AssistantPart['providerOptions']
type Block = { type: 'text' | 'reasoning'; text: string; providerOptions?: NonNullable<Metadata> }

class Draft {
  readonly #content: AssistantPart[] = []
  readonly #blocks = new Map<string, Block>()
  readonly #calls: ToolCall[] = []
  #text = ''
  #chars = 0

  /** Adds a piece to a block of text. The newest metadata of a block replaces earlier metadata. */
  extend(type: Block['type'], id: string, delta: string, metadata: Metadata): void {
    const key = `${type} ${id}`
    let block = this.#blocks.get(key)
    if (!block) {
      block = { type, text: '' }
      this.#blocks.set(key, block)
      this.#content.push(block)
    }
    block.text += delta
    if (metadata) block.providerOptions = metadata
    if (type === 'text') this.#text += delta
    this.#grow(delta.length)
  }

  call(part: {
    readonly toolCallId: string
    readonly toolName: string
    readonly input: string
    readonly providerMetadata?: Metadata
  }): void {
    const isUsable = part.toolCallId !== '' && this.#calls.every((call) => call.id !== part.toolCallId)
    const id = isUsable ? part.toolCallId : `call_${randomUUID()}`
    const name = part.toolName.replaceAll(/[^\w-]/g, '_').slice(0, NAME_CHARS_MAX) || 'unnamed'
    this.#calls.push({ id, name, input: part.input })
    this.#content.push({
      type: 'tool-call',
      toolCallId: id,
      toolName: name,
      input: objectOf(part.input),
      ...(part.providerMetadata && { providerOptions: part.providerMetadata }),
    })
    this.#grow(part.input.length)
  }

  /** Leaves out blank text, which some providers refuse in a history. */
  finish(finish: ModelReply['finish'], usage: ModelUsage): ModelReply {
    const content = this.#content.filter((part) => part.type !== 'text' || part.text.trim() !== '')
    return { text: this.#text, calls: this.#calls, content, finish, usage }
  }

  #grow(chars: number): void {
    this.#chars += chars
    if (this.#chars > REPLY_CHARS_MAX) throw new Error(`the reply is longer than ${REPLY_CHARS_MAX} characters`)
  }
}

/** Returns the input for the history, in which providers accept only objects. Any other input gets an error result. */
function objectOf(json: string): unknown {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
  } catch {
    return {}
  }
}
