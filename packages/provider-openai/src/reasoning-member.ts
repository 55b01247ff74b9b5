/**
 * Sends reasoning back under the name that it came with. Services disagree on the member: DeepSeek and Moonshot require
 * `reasoning_content` after a tool call, Groq and Cerebras answer 400 to it and want `reasoning`, OpenRouter signs
 * `reasoning_details`, Mistral uses parts of the content, and some models write tags into the text.
 */
import type { ModelMessage, ModelPrompt } from '@sluice/sdk'
import { CLOSING_TAG, OPENING_TAG } from './think-tags.ts'

/** The members of a message that carry reasoning; `content`: a part of the content; `tags`: tags in the text. */
export type ReasoningMember = 'reasoning' | 'reasoning_content' | 'content' | 'tags'

/** The data that a reasoning part of a reply keeps for the next request, as JSON. */
export type ReasoningOrigin = {
  /** The kind of the provider. Another provider does not get this reasoning. */
  readonly kind: string
  readonly member: ReasoningMember
  /** The `reasoning_details` of OpenRouter, unchanged. */
  readonly details: Detail[]
}

type Json = null | string | number | boolean | Json[] | { [name: string]: Json }
type Detail = { [name: string]: Json }

/** The key of `ReasoningOrigin` in the metadata of a part. */
export const ORIGIN = 'sluice'

type Members = Readonly<Record<string, unknown>>
const membersOf = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {})
const isFilled = (value: unknown): boolean => typeof value === 'string' && value !== ''

/** Watches one reply for its reasoning. */
export class ReasoningWatch {
  #member: ReasoningMember | undefined
  readonly #details: Detail[] = []

  /** Takes a whole body or a chunk of a stream. */
  see(body: unknown): void {
    const { choices } = membersOf(body)
    const choice = membersOf(Array.isArray(choices) ? choices[0] : undefined)
    const { reasoning_content, reasoning, content, reasoning_details } = membersOf(choice.delta ?? choice.message)
    if (isFilled(reasoning_content)) this.#member = 'reasoning_content'
    else if (isFilled(reasoning)) this.#member = 'reasoning'
    else if (Array.isArray(content) && content.some((part) => membersOf(part).type === 'thinking')) this.#member = 'content'
    if (Array.isArray(reasoning_details)) for (const detail of reasoning_details) this.#add(membersOf(detail) as Detail)
  }

  /** Returns undefined for a reply without reasoning. */
  origin(kind: string): ReasoningOrigin | undefined {
    if (this.#member === undefined && this.#details.length === 0) return undefined
    return { kind, member: this.#member ?? 'reasoning', details: this.#details }
  }

  /** A stream sends a detail in pieces with the same `index` and `type`. */
  #add(piece: Detail): void {
    const begun = this.#details.find(({ index, type }) => index !== undefined && index === piece.index && type === piece.type)
    if (!begun) {
      this.#details.push({ ...piece })
      return
    }
    for (const [name, value] of Object.entries(piece)) {
      const before = begun[name]
      const isPiece = GROWING.has(name) && typeof before === 'string' && typeof value === 'string'
      if (isPiece) begun[name] = before + value
      else if (value !== null) begun[name] = value
    }
  }
}

/** The members of a detail that a stream sends in pieces. */
const GROWING = new Set(['text', 'summary', 'data'])

type Assistant = Extract<ModelMessage, { role: 'assistant' }>

/** Puts the reasoning of each message where it came from. Reasoning of other providers is left out. */
export const withReasoning = (prompt: ModelPrompt, kind: string): ModelPrompt =>
  prompt.some(({ role }) => role === 'assistant')
    ? prompt.map((message) => (message.role === 'assistant' ? restored(message, kind) : message))
    : prompt

function restored(message: Assistant, kind: string): Assistant {
  const parts = message.content.filter((part) => part.type === 'reasoning')
  if (parts.length === 0) return message
  const rest = message.content.filter((part) => part.type !== 'reasoning')
  const ours = parts.filter((part) => originOf(part.providerOptions)?.kind === kind)
  const origin = originOf(ours[0]?.providerOptions)
  if (!origin) return { ...message, content: rest }
  const reasoning = ours.map(({ text }) => text).join('')
  const text = rest.map((part) => (part.type === 'text' ? part.text : '')).join('')
  if (origin.member === 'tags') return { ...message, content: [{ type: 'text', text: OPENING_TAG + reasoning + CLOSING_TAG }, ...rest] }
  const details = ours.flatMap((part) => originOf(part.providerOptions)?.details ?? [])
  const members = origin.member === 'content' ? { content: thinkingContent(reasoning, text) } : { [origin.member]: reasoning }
  return {
    ...message,
    content: rest,
    providerOptions: { openaiCompatible: { ...(reasoning !== '' && members), ...(details.length > 0 && { reasoning_details: details }) } },
  }
}

const thinkingContent = (reasoning: string, text: string) => [
  { type: 'thinking', thinking: [{ type: 'text', text: reasoning }] },
  ...(text === '' ? [] : [{ type: 'text', text }]),
]

const originOf = (metadata: Assistant['providerOptions']): ReasoningOrigin | undefined => metadata?.[ORIGIN] as ReasoningOrigin | undefined

/** A service that requires reasoning refuses an empty text. */
const PLACEHOLDER = ' '

/**
 * Completes the messages with tool calls of a request. Their reasoning is missing in earlier turns, whose reasoning is not stored, and
 * in calls that the model made without reasoning.
 */
export function withPlaceholders(body: Members): Members {
  const messages = Array.isArray(body.messages) ? body.messages.map(membersOf) : []
  const completed = messages.map((message) =>
    message.tool_calls === undefined || isFilled(message.reasoning_content) ? message : { ...message, reasoning_content: PLACEHOLDER },
  )
  return { ...body, messages: completed }
}
