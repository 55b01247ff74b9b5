/** Computes the offline provider's reply as a pure function of the prompt. */
import type { ModelPrompt } from '@sluice/sdk'
import { type Conversation, nextCallNumber, readConversation, type UserContent, userText } from './conversation.ts'

export type Reply =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly id: string; readonly tool: string; readonly input: string }

const HISTORY_MAX = 50
const LINE_CHARS_MAX = 200

const HELP = `This is the offline provider: no model is configured, so replies follow fixed rules.
/tool <name> <json>  runs a tool with that input and shows its result
/history             lists your earlier messages in this session
/help                shows this help
Any other message is echoed. To use a model, set [provider] kind and model in the configuration.`

/** Answers with the outcomes of tools that just ran, else with the command or an echo of the user's message. */
export function reply(prompt: ModelPrompt): Reply {
  const conversation = readConversation(prompt)
  if (conversation.outcomes.length > 0) return text(outcomeText(conversation))
  const message = userText(conversation.userMessages.at(-1) ?? []).trim()
  if (/^\/tool(\s|$)/.test(message)) return toolReply(message, prompt)
  if (message === '/history') return text(historyText(conversation))
  return text(message === '/help' ? HELP : echo(conversation))
}

const text = (value: string): Reply => ({ kind: 'text', text: value })

function toolReply(message: string, prompt: ModelPrompt): Reply {
  const [, tool, json = ''] = /^\/tool\s+(\S+)\s*(.*)$/s.exec(message) ?? []
  if (!tool) return text('Offline provider: name the tool to run, for example /tool file_read {"path": "notes.txt"}.')
  const input = parseInput(json || '{}')
  if (typeof input === 'string') return text(`Offline provider: the input of ${tool} ${input}.`)
  return { kind: 'call', id: `offline-${nextCallNumber(prompt)}`, tool, input: JSON.stringify(input) }
}

/** Returns the JSON object, or the end of a sentence that says why the text is not one. */
function parseInput(json: string): object | string {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? value
      : 'must be a JSON object, such as {"path": "notes.txt"}'
  } catch (error) {
    return `is not JSON (${error instanceof Error ? error.message : error})`
  }
}

const outcomeText = ({ outcomes }: Conversation): string =>
  outcomes.map(({ tool, failed, text: result }) => `Offline provider: ${tool} ${failed ? 'failed' : 'answered'}:\n${result}`).join('\n\n')

function historyText({ userMessages }: Conversation): string {
  const earlier = userMessages.slice(0, -1)
  if (earlier.length === 0) return 'Offline provider: you sent no earlier message in this session.'
  const shown = earlier.slice(-HISTORY_MAX)
  const first = earlier.length - shown.length + 1
  const lines = shown.map((message, index) => `${first + index}. ${clip(message)}`)
  return `Offline provider: your earlier messages, oldest first:\n${lines.join('\n')}`
}

const clip = (message: UserContent): string => {
  const line = userText(message).replace(/\s+/g, ' ')
  return line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}…` : line
}

function echo({ userMessages }: Conversation): string {
  const before = userMessages.length - 1
  const previous = userMessages.at(-2)
  const start = `Offline provider (no model is configured). You said: ${userText(userMessages.at(-1) ?? [])}`
  if (previous === undefined) return `${start}\nYou sent no earlier message in this session.`
  return `${start}\nYou sent ${before === 1 ? 'one earlier message' : `${before} earlier messages`}; the last one: ${clip(previous)}`
}
