/** Reads the parts of a prompt that the offline provider answers. */
import { type ModelMessage, type ModelPrompt, withoutFrames } from '@sluice/sdk'

export interface ToolOutcome {
  readonly tool: string
  readonly failed: boolean
  readonly text: string
}

export interface Conversation {
  /** The user's messages, oldest first; the current one is last. `userText` reads one. */
  readonly userMessages: readonly UserContent[]
  /** The tool results since the current message. */
  readonly outcomes: readonly ToolOutcome[]
}

export type UserContent = Extract<ModelMessage, { role: 'user' }>['content']
type ToolMessage = Extract<ModelMessage, { role: 'tool' }>
type ToolResult = Extract<ToolMessage['content'][number], { type: 'tool-result' }>

/** Collects the user's messages and the tool results that came after the last one. */
export function readConversation(prompt: ModelPrompt): Conversation {
  const userMessages: UserContent[] = []
  let outcomes: ToolOutcome[] = []
  for (const message of prompt) {
    if (message.role === 'user') {
      userMessages.push(message.content)
      outcomes = []
    } else if (message.role === 'tool') {
      for (const part of message.content) if (part.type === 'tool-result') outcomes.push(outcomeOf(part))
    }
  }
  return { userMessages, outcomes }
}

/** Call it only for messages that the reply shows: it searches the whole text for frames. */
export const userText = (content: UserContent): string =>
  content.map((part) => (part.type === 'text' ? withoutFrames(part.text) : `[file ${part.filename ?? part.mediaType}]`)).join('\n')

function outcomeOf({ toolName, output }: ToolResult): ToolOutcome {
  const failed = output.type.startsWith('error') || output.type === 'execution-denied'
  return { tool: toolName, failed, text: withoutFrames(outputText(output)) }
}

function outputText(output: ToolResult['output']): string {
  if (output.type === 'execution-denied') return output.reason ?? 'the call was denied'
  if (output.type === 'content') return output.value.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n')
  return typeof output.value === 'string' ? output.value : JSON.stringify(output.value)
}

/** Returns one more than the highest number in the prompt's call ids, so an id never repeats in a session. */
export function nextCallNumber(prompt: ModelPrompt): number {
  let highest = 0
  for (const { role, content } of prompt) {
    if (role !== 'assistant') continue
    for (const part of content) {
      const number = part.type === 'tool-call' ? /^offline-(\d{1,9})$/.exec(part.toolCallId)?.[1] : undefined
      highest = Math.max(highest, Number(number ?? 0))
    }
  }
  return highest + 1
}

/** Estimates the tokens of a prompt at four characters a token. */
export function promptTokens(prompt: ModelPrompt): number {
  let chars = 0
  for (const { role, content } of prompt) {
    if (role === 'system') chars += content.length
    else for (const part of content) chars += partChars(part)
  }
  return Math.ceil(chars / 4)
}

type Part = Exclude<ModelMessage, { role: 'system' }>['content'][number]

function partChars(part: Part): number {
  if (part.type === 'text' || part.type === 'reasoning') return part.text.length
  if (part.type === 'tool-call') return part.toolName.length + JSON.stringify(part.input ?? null).length
  return part.type === 'tool-result' ? outputText(part.output).length : 0
}
