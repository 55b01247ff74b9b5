/** What the offline provider reads from a prompt. */
import type { ModelMessage, ModelPrompt } from '@sluice/sdk'

export interface ToolOutcome {
  readonly tool: string
  readonly failed: boolean
  readonly text: string
}

export interface Conversation {
  /** What the user said, oldest first, the current message last. */
  readonly said: readonly string[]
  /** What came back from tools since the current message. */
  readonly outcomes: readonly ToolOutcome[]
}

type ToolMessage = Extract<ModelMessage, { role: 'tool' }>
type ToolResult = Extract<ToolMessage['content'][number], { type: 'tool-result' }>

export function readConversation(prompt: ModelPrompt): Conversation {
  const said: string[] = []
  let outcomes: ToolOutcome[] = []
  for (const message of prompt) {
    if (message.role === 'user') {
      said.push(userText(message.content))
      outcomes = []
    } else if (message.role === 'tool') {
      for (const part of message.content) if (part.type === 'tool-result') outcomes.push(outcomeOf(part))
    }
  }
  return { said, outcomes }
}

const userText = (content: Extract<ModelMessage, { role: 'user' }>['content']): string =>
  content.map((part) => (part.type === 'text' ? part.text : `[file ${part.filename ?? part.mediaType}]`)).join('\n')

function outcomeOf({ toolName, output }: ToolResult): ToolOutcome {
  const failed = output.type.startsWith('error') || output.type === 'execution-denied'
  return { tool: toolName, failed, text: outputText(output) }
}

function outputText(output: ToolResult['output']): string {
  if (output.type === 'execution-denied') return output.reason ?? 'it was not allowed to run'
  if (output.type === 'content') return output.value.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n')
  return typeof output.value === 'string' ? output.value : JSON.stringify(output.value)
}

/** One more than the highest number in the prompt's call ids, so that ids repeat neither in a session nor by chance. */
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

/** An estimate: four characters a token. */
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
