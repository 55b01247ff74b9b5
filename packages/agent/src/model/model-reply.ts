/** Reads one reply of a model, as a whole or streamed. */
import { randomUUID } from 'node:crypto'
import type {
  LanguageModel,
  ModelCallOptions,
  ModelFinishReason,
  ModelGenerateResult,
  ModelMessage,
  ModelStreamPart,
  ModelUsage,
} from '@sluice/sdk'
import { estimateTokens, messagesTokens } from '../history/tokens.ts'
import type { Cancellation } from '../turn/cancellation.ts'
import { objectOfArguments } from './parse-arguments.ts'

export interface ToolCall {
  /** The id: not empty and unique within the reply. */
  readonly id: string
  /** The name in letters, digits, `_` and `-`, which every provider accepts in a history. */
  readonly name: string
  /** The JSON of the model, unchanged. */
  readonly input: string
  /** Whether the reply ended within this call, so that its input may be incomplete. Such a call does not run. */
  readonly isCut?: boolean
}

/**
 * How a reply ended. `refused`: the model declined. `paused`: the provider stopped in the middle of its own work and goes on when the
 * reply is sent back. A reason that is unknown counts as `other`, which ends a reply like `stop`.
 */
export type ReplyEnd = ModelFinishReason['unified'] | 'refused' | 'paused'

export type AssistantPart = Extract<ModelMessage, { role: 'assistant' }>['content'][number]

export interface ModelReply {
  /** The text for people. */
  readonly text: string
  /** The calls that the agent runs. Calls that the provider has run itself are only in `content`. */
  readonly calls: readonly ToolCall[]
  /** The message for the next call of the same turn, with thinking and provider metadata. */
  readonly content: AssistantPart[]
  readonly finish: ReplyEnd
  readonly usage: ModelUsage
}

/** Receives the pieces of a streamed reply. */
export type HearDelta = (type: 'text' | 'thinking', delta: string) => void

/** A longer reply is an error: no person reads a text of this length. */
const REPLY_CHARS_MAX = 8_000_000
const NAME_CHARS_MAX = 64

/** Requests the whole reply at once. */
export async function generateReply(
  model: LanguageModel,
  options: ModelCallOptions,
  cancellation: Cancellation,
  draft = new ReplyDraft(),
): Promise<ModelReply> {
  const { content, finishReason, usage } = await cancellation.race(model.doGenerate(options))
  for (const [index, part] of content.entries()) {
    if (part.type === 'text' || part.type === 'reasoning') draft.extend(part.type, `${index}`, part.text, part.providerMetadata)
    else draft.add(part)
  }
  return draft.finish(endOf(finishReason), usage)
}

/** Requests a streamed reply. A stream that breaks off ends as `interrupted`; one that reports an error throws it. */
export async function streamReply(
  model: LanguageModel,
  options: ModelCallOptions,
  cancellation: Cancellation,
  { hear, alive, draft = new ReplyDraft() }: { readonly hear: HearDelta; readonly alive: () => void; readonly draft?: ReplyDraft },
): Promise<ModelReply> {
  const { stream } = await cancellation.race(model.doStream(options))
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await cancellation.race(reader.read())
      if (done) return draft.finish('interrupted', UNCOUNTED)
      alive()
      if (value.type === 'error') throw value.error
      if (value.type === 'finish') return draft.finish(endOf(value.finishReason), value.usage)
      addPart(draft, value, hear)
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

function addPart(draft: ReplyDraft, part: ModelStreamPart, hear: HearDelta): void {
  switch (part.type) {
    case 'text-start':
    case 'text-end':
      draft.extend('text', part.id, '', part.providerMetadata)
      break
    case 'reasoning-start':
    case 'reasoning-end':
      draft.extend('reasoning', part.id, '', part.providerMetadata)
      break
    case 'text-delta': {
      const block = draft.extend('text', part.id, part.delta, part.providerMetadata)
      if (part.delta !== '' && !isCompaction(block)) hear('text', part.delta)
      break
    }
    case 'reasoning-delta':
      draft.extend('reasoning', part.id, part.delta, part.providerMetadata)
      if (part.delta !== '') hear('thinking', part.delta)
      break
    case 'tool-input-delta':
      draft.extendInput(part.id, part.delta)
      break
    default:
      draft.add(part)
  }
}

/** The reasons of Anthropic that ask for the same reply to be continued. */
const PAUSES = new Set(['pause_turn', 'compaction'])
/** The reasons of a refusal: of Anthropic, and of OpenAI, which reports a refusal as a complete answer. */
const REFUSALS = new Set(['refusal', 'stop'])

function endOf({ unified, raw = '' }: ModelFinishReason): ReplyEnd {
  if (PAUSES.has(raw)) return 'paused'
  return unified === 'content-filter' && REFUSALS.has(raw) ? 'refused' : unified
}

/** Tells whether a text is the summary of a conversation that the provider made for itself, and not a part of the answer. */
export const isCompaction = ({ providerOptions }: { readonly providerOptions?: Metadata }): boolean =>
  Object.values(providerOptions ?? {}).some((options) => options?.type === 'compaction')

/** The usage of a reply whose tokens the provider has not counted. */
export const UNCOUNTED: ModelUsage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
}

type ModelContent = ModelGenerateResult['content'][number]
type ModelToolCall = Extract<ModelContent, { type: 'tool-call' }>
type ModelToolResult = Extract<ModelContent, { type: 'tool-result' }>
type Metadata = AssistantPart['providerOptions']
type Block = { type: 'text' | 'reasoning'; text: string; providerOptions?: NonNullable<Metadata> }

/** A reply while it arrives. */
export class ReplyDraft {
  readonly #content: AssistantPart[] = []
  readonly #blocks = new Map<string, Block>()
  readonly #calls: ToolCall[] = []
  /** The estimated tokens of the calls that have not arrived as a whole, by id. */
  readonly #inputs = new Map<string, number>()
  #chars = 0

  /** The estimated tokens of the part that has arrived; 0 before the first piece. */
  get tokens(): number {
    const ofInputs = this.#inputs.values().reduce((sum, tokens) => sum + tokens, 0)
    return ofInputs + (this.#content.length > 0 ? messagesTokens([{ role: 'assistant', content: this.#content }]) : 0)
  }

  /** Counts a piece of the input of a call, which `add` takes once it is whole. */
  extendInput(id: string, delta: string): void {
    this.#inputs.set(id, (this.#inputs.get(id) ?? 0) + estimateTokens(delta))
  }

  /** Adds a piece to a block of text. The newest metadata of a block replaces earlier metadata. */
  extend(type: Block['type'], id: string, delta: string, metadata: Metadata): Block {
    const key = `${type} ${id}`
    let block = this.#blocks.get(key)
    if (!block) {
      block = { type, text: '' }
      this.#blocks.set(key, block)
      this.#content.push(block)
    }
    block.text += delta
    if (metadata) block.providerOptions = metadata
    this.#grow(delta.length)
    return block
  }

  /** Adds any other part. Parts of unknown types, and sources and files, are left out. */
  add(part: ModelContent | ModelStreamPart): void {
    if (part.type === 'tool-call') this.#inputs.delete(part.toolCallId)
    if (part.type === 'tool-call') part.providerExecuted ? this.#addProviderCall(part) : this.#addCall(part)
    else if (part.type === 'tool-result' && !part.preliminary) this.#addProviderResult(part)
    else if (part.type === 'custom') this.#content.push({ type: 'custom', kind: part.kind, ...optionsOf(part) })
  }

  /** A call that the provider runs. It goes back unchanged, because the provider finds its own work by the id. */
  #addProviderCall(part: ModelToolCall): void {
    const { toolCallId, toolName, input } = part
    this.#content.push({
      type: 'tool-call',
      toolCallId,
      toolName,
      input: objectOfArguments(input),
      providerExecuted: true,
      ...optionsOf(part),
    })
    this.#grow(input.length)
  }

  #addProviderResult(part: ModelToolResult): void {
    const { toolCallId, toolName, result, isError } = part
    const output = { type: isError ? ('error-json' as const) : ('json' as const), value: result }
    this.#content.push({ type: 'tool-result', toolCallId, toolName, output, ...optionsOf(part) })
    this.#grow(JSON.stringify(result)?.length ?? 0)
  }

  #addCall(part: ModelToolCall): void {
    const isUsable = part.toolCallId !== '' && this.#calls.every((call) => call.id !== part.toolCallId)
    const id = isUsable ? part.toolCallId : `call_${randomUUID()}`
    const name = part.toolName.replaceAll(/[^\w-]/g, '_').slice(0, NAME_CHARS_MAX) || 'unnamed'
    this.#calls.push({ id, name, input: part.input })
    this.#content.push({ type: 'tool-call', toolCallId: id, toolName: name, input: objectOfArguments(part.input), ...optionsOf(part) })
    this.#grow(part.input.length)
  }

  /** Leaves out blank parts, which some providers refuse in a history. */
  finish(finish: ModelReply['finish'], usage: ModelUsage): ModelReply {
    const content = this.#content.filter((part) => !isBlank(part))
    const text = this.#content.map((part) => (part.type === 'text' && !isCompaction(part) ? part.text : '')).join('')
    const last = content.at(-1)
    const isCut = (finish === 'length' || finish === 'content-filter' || finish === 'refused') && last?.type === 'tool-call'
    const calls = this.#calls.map((call) => (isCut && call.id === last.toolCallId ? { ...call, isCut } : call))
    return { text, calls, content, finish, usage }
  }

  #grow(chars: number): void {
    this.#chars += chars
    if (this.#chars > REPLY_CHARS_MAX) throw new Error(`the reply is longer than ${REPLY_CHARS_MAX} characters`)
  }
}

const isBlank = (part: AssistantPart): boolean =>
  (part.type === 'text' && part.text.trim() === '') || (part.type === 'reasoning' && part.text === '' && !part.providerOptions)

const optionsOf = ({ providerMetadata }: { readonly providerMetadata?: Metadata }) =>
  providerMetadata === undefined ? {} : { providerOptions: providerMetadata }
