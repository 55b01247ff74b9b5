/** What the offline provider answers: a pure function of the prompt. */
import type { ModelPrompt } from '@sluice/sdk'
import { type Conversation, nextCallNumber, readConversation } from './conversation.ts'

export type Reply =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly id: string; readonly tool: string; readonly input: string }

const HISTORY_MAX = 50
const LINE_CHARS_MAX = 200

const HELP = `This is the offline provider: no model is configured, so nothing here thinks.
/tool <name> <json>  runs a tool with that input and shows its result
/history             lists what you said before in this session
/help                shows this
Anything else is echoed. To get a model, set [provider] kind and model in the configuration.`

export function reply(prompt: ModelPrompt): Reply {
  const conversation = readConversation(prompt)
  if (conversation.outcomes.length > 0) return text(outcomeText(conversation))
  const message = (conversation.said.at(-1) ?? '').trim()
  if (/^\/tool(\s|$)/.test(message)) return toolReply(message, prompt)
  if (message === '/history') return text(historyText(conversation))
  return text(message === '/help' ? HELP : echo(conversation))
}

const text = (value: string): Reply => ({ kind: 'text', text: value })

function toolReply(message: string, prompt: ModelPrompt): Reply {
  const [, tool, json = ''] = /^\/tool\s+(\S+)\s*(.*)$/s.exec(message) ?? []
  if (!tool) return text('Offline provider: name the tool to run, as in /tool file_read {"path": "notes.txt"}.')
  const input = parseInput(json || '{}')
  if (typeof input === 'string') return text(`Offline provider: the input of ${tool} ${input}.`)
  return { kind: 'call', id: `offline-${nextCallNumber(prompt)}`, tool, input: JSON.stringify(input) }
}

/** The object, or what is wrong with the text. */
function parseInput(json: string): object | string {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? value
      : 'has to be a JSON object, such as {"path": "notes.txt"}'
  } catch (error) {
    return `is not JSON (${error instanceof Error ? error.message : error})`
  }
}

const outcomeText = ({ outcomes }: Conversation): string =>
  outcomes.map(({ tool, failed, text: result }) => `Offline provider: ${tool} ${failed ? 'failed' : 'answered'}:\n${result}`).join('\n\n')

function historyText({ said }: Conversation): string {
  const earlier = said.slice(0, -1)
  if (earlier.length === 0) return 'Offline provider: you said nothing before this in the session.'
  const shown = earlier.slice(-HISTORY_MAX)
  const first = earlier.length - shown.length + 1
  const lines = shown.map((message, index) => `${first + index}. ${clip(message)}`)
  return `Offline provider: before this you said, oldest first:\n${lines.join('\n')}`
}

const clip = (message: string): string => {
  const line = message.replace(/\s+/g, ' ')
  return line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}…` : line
}

function echo({ said }: Conversation): string {
  const before = said.length - 1
  const previous = said.at(-2)
  const start = `Offline provider (no model is configured). You said: ${said.at(-1) ?? ''}`
  if (previous === undefined) return `${start}\nNo message of yours came before it.`
  return `${start}\nBefore it came ${before === 1 ? 'one message' : `${before} messages`} of yours; the last one: ${clip(previous)}`
}
