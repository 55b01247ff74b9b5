/**
 * Selects the messages for the model: the summary and the newest messages within the limits, and never a tool result without its
 * call.
 */
import type { Conversation, ModelMessage } from '@sluice/sdk'
import { asRead, coveredBy, framedSummary } from './message-notes.ts'
import { shorten } from './shorten.ts'
import { charsOfTokens, estimateTokens, messagesTokens, messageTokens } from './tokens.ts'

export interface HistoryLimits {
  /** The limit of stored messages. */
  readonly messagesMax: number
  /** The estimated limit of the whole conversation. */
  readonly tokensMax: number
  /** True after the model has refused a longer conversation: then also the newest results and texts are cut if nothing else helps. */
  readonly mustFit?: boolean
}

/** The largest part of the window that a new summary takes. */
const SUMMARY_SHARE = 1 / 4
const CHARS_PER_TOKEN = 4
/** The lengths between which results are cut after the model has refused a longer conversation. */
const RESULT_CHARS_MIN = 200
const RESULT_CHARS_MAX = 2000

/**
 * Replaces omitted messages. Without a summary it is used only where the conversation would not begin with a message of
 * a person, which providers refuse.
 */
const EARLIER: ModelMessage = { role: 'user', content: [{ type: 'text', text: '(Earlier messages were left out.)' }] }

/** Returns the length in characters of the longest summary in a window of this size. */
export const summaryCharsMax = (tokensMax: number): number => Math.floor(tokensMax * SUMMARY_SHARE) * CHARS_PER_TOKEN

/** Cuts a summary of a larger window, so that it leaves half of this one. */
const fitSummary = (text: string, tokensMax: number): string => shorten(text, charsOfTokens(text, Math.floor(tokensMax / 2)))

/** Returns whether the summary, the stored messages and the turn's messages fit into the window. */
export function fitsWindow(
  { summary, messages }: Conversation,
  current: readonly ModelMessage[],
  { messagesMax, tokensMax }: HistoryLimits,
): boolean {
  if (messages.length > messagesMax) return false
  const ofSummary = summary ? Math.min(estimateTokens(summary.text), tokensMax / 2) : 0
  return ofSummary + messagesTokens(asRead(messages)) + messagesTokens(asRead(current)) <= tokensMax
}

/**
 * Returns the number of oldest messages to summarise, so that about half of the window is free afterwards: most turns then need no
 * new summary, and the beginning of their prompts, which providers cache, stays the same. The rest begins with a message of a person
 * if possible, and never with a tool result. `currentTokens` counts the running turn.
 */
export function summarizedCount(
  messages: readonly ModelMessage[],
  currentTokens: number,
  { messagesMax, tokensMax }: HistoryLimits,
): number {
  const keptMax = Math.min(tokensMax / 2, tokensMax * (1 - SUMMARY_SHARE) - currentTokens)
  const covers = coveredBy(messages)
  let tokens = 0
  let first = messages.length
  let firstOfPerson: number | undefined
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]
    if (message && covers[at] === at) tokens += messageTokens(asRead([message])[0] ?? message)
    if (tokens > keptMax || messages.length - at > messagesMax / 2) break
    if (message?.role !== 'tool') first = at
    if (message?.role === 'user') firstOfPerson = at
  }
  return firstOfPerson ?? first
}

/**
 * Returns the summary and the stored messages of a conversation, followed by the messages of the current turn, as the model reads them. All
 * messages of the current turn are included, and as many of the newest stored messages as fit.
 */
export function fitConversation(
  { upTo, summary, messages: stored }: Conversation,
  ofTurn: readonly ModelMessage[],
  { messagesMax, tokensMax, mustFit = false }: HistoryLimits,
): ModelMessage[] {
  const messages = asRead(stored)
  const current = asRead(ofTurn)
  // A person who began a new conversation left an empty summary of everything before.
  if (!summary || summary.text === '') return fitMessages(messages, current, { messagesMax, tokensMax, mustFit, before: 'nothing' })
  const text = framedSummary(fitSummary(summary.text, tokensMax), summary.untrusted)
  const left = Math.max(0, tokensMax - estimateTokens(text))
  const before = upTo - stored.length > summary.upTo ? 'gap' : 'summary'
  const [first, ...rest] = fitMessages(messages, current, { messagesMax, tokensMax: left, mustFit, before })
  const opening = { type: 'text' as const, text }
  // Some models refuse two messages of a person in a row.
  if (first?.role === 'user') return [{ ...first, content: [opening, ...first.content] }, ...rest]
  return [{ role: 'user', content: [opening] }, ...(first ? [first] : []), ...rest]
}

interface FitLimits extends HistoryLimits {
  /** What precedes the stored messages: a summary, or a summary and messages that are neither in it nor among the stored ones. */
  readonly before: 'nothing' | 'summary' | 'gap'
}

function fitMessages(history: readonly ModelMessage[], current: readonly ModelMessage[], limits: FitLimits): ModelMessage[] {
  const { messagesMax, tokensMax, before } = limits
  const isTooLong = messagesTokens(history) + messagesTokens(current) > tokensMax
  // The usual case, which must be cheap: everything fits, and the history has no tool calls.
  const isBegun = before === 'nothing' ? history[0]?.role === 'user' : before === 'summary'
  if (!isTooLong && history.length <= messagesMax && isBegun && history.every(standsAlone)) return [...history, ...current]
  const rest = isTooLong && limits.mustFit && messagesTokens(current) > tokensMax ? shortenToFit(current, tokensMax) : current
  return [...newestThatFit(toBlocks(history), { messagesMax, tokensMax: tokensMax - messagesTokens(rest), before }), ...rest]
}

const standsAlone = ({ role, content }: ModelMessage): boolean =>
  role === 'user' || (role === 'assistant' && content.every(({ type }) => type !== 'tool-call'))

function newestThatFit(blocks: readonly ModelMessage[][], { messagesMax, tokensMax, before }: FitLimits): ModelMessage[] {
  let messages = 0
  let tokens = messageTokens(EARLIER)
  let first = blocks.length
  for (; first > 0; first--) {
    const block = blocks[first - 1] ?? []
    messages += block.length
    tokens += messagesTokens(block)
    if (messages > messagesMax || tokens > tokensMax) break
  }
  const kept = blocks.slice(first).flat()
  const isMarked = before === 'nothing' ? kept.length > 0 && kept[0]?.role !== 'user' : before === 'gap' || first > 0
  return isMarked ? [EARLIER, ...kept] : kept
}

/**
 * Groups messages that belong together: tool calls of the assistant with all their results, and any other message alone. Calls
 * without results and results without calls are left out, because providers refuse them.
 */
function toBlocks(messages: readonly ModelMessage[]): ModelMessage[][] {
  const blocks: ModelMessage[][] = []
  for (let at = 0; at < messages.length; ) {
    const message = messages[at++]
    if (!message || message.role === 'tool') continue
    const block: ModelMessage[] = [message]
    for (let next = messages[at]; next?.role === 'tool'; next = messages[++at]) block.push(next)
    const calls = idsOf([message], 'tool-call')
    const results = idsOf(block.slice(1), 'tool-result')
    if (calls.length === 0) blocks.push([message])
    else if (isSameSet(calls, results)) blocks.push(block)
  }
  return blocks
}

const idsOf = (messages: readonly ModelMessage[], type: 'tool-call' | 'tool-result'): string[] =>
  messages.flatMap((message) =>
    message.role === 'system' ? [] : message.content.flatMap((part) => (part.type === type && 'toolCallId' in part ? part.toolCallId : [])),
  )

/** Tells whether both lists have the same ids, each once. */
const isSameSet = (a: readonly string[], b: readonly string[]): boolean =>
  new Set(a).size === a.length && a.toSorted().join('\n') === b.toSorted().join('\n')

/** Shortens all results, and the long texts of persons if that is not enough, so that the messages of one turn fit if they can. */
function shortenToFit(messages: readonly ModelMessage[], tokensMax: number): ModelMessage[] {
  const results = messages.flatMap((message) => (message.role === 'tool' ? message.content : []))
  const left = tokensMax - messagesTokens(messages.filter(({ role }) => role !== 'tool'))
  const chars = Math.min(RESULT_CHARS_MAX, Math.max(RESULT_CHARS_MIN, Math.floor((left * CHARS_PER_TOKEN) / Math.max(1, results.length))))
  const shortened = messages.map((message) => (message.role === 'tool' ? shortenResult(message, chars) : message))
  const textChars = (tokensMax * CHARS_PER_TOKEN) / 2
  return messagesTokens(shortened) <= tokensMax ? shortened : shortened.map((message) => shortenText(message, textChars))
}

const shortenText = (message: ModelMessage, chars: number): ModelMessage =>
  message.role !== 'user'
    ? message
    : { ...message, content: message.content.map((part) => (part.type === 'text' ? { ...part, text: shorten(part.text, chars) } : part)) }

type ToolMessage = Extract<ModelMessage, { role: 'tool' }>

const shortenResult = (message: ToolMessage, chars: number): ToolMessage => ({
  role: 'tool',
  content: message.content.map((part) => shortenPart(part, chars)),
})

function shortenPart(part: ToolMessage['content'][number], chars: number): ToolMessage['content'][number] {
  if (part.type !== 'tool-result' || (part.output.type !== 'text' && part.output.type !== 'error-text')) return part
  return { ...part, output: { ...part.output, value: shorten(part.output.value, chars) } }
}
