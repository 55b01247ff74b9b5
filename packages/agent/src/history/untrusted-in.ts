/** Finds untrusted text in the messages that a model reads: framed text, files of messages, and results of tools that a provider runs. */
import { type Conversation, type ModelMessage, untrustedSource } from '@sluice/sdk'
import { namesReadableFile } from './attached-files.ts'
import { isOfLower, notesIn, type Writer, writerOf } from './message-notes.ts'

/** Reads what every other person has written as untrusted, because it is not known for whom it is read. */
const ANYONE: Writer = { client: '', standing: 'operator' }

/**
 * Returns the sources of untrusted text, the newest first. The stored messages alone decide, so a resumed turn finds the same. In a room,
 * the words of people who stand lower than the reader, the person of the turn, are untrusted too.
 */
export function sourcesIn(
  { messages, summary }: Pick<Conversation, 'messages' | 'summary'>,
  current: readonly ModelMessage[],
  reader: Writer = ANYONE,
): string[] {
  const found = [current, messages].flatMap((list) => list.toReversed().flatMap((message) => sourcesInMessage(message, reader)))
  return [...new Set([...found, ...(summary?.untrusted ? ['the summary of earlier messages'] : [])])]
}

export function sourcesInMessage(message: ModelMessage, reader: Writer = ANYONE): string[] {
  if (message.role === 'system') return []
  const { compaction, recalled } = notesIn(message)
  const summary = compaction?.untrusted === true ? ['the summary of earlier messages'] : []
  const memories = recalled === undefined ? undefined : untrustedSource(recalled)
  const parts = message.content.flatMap((part) => untrustedInPart(message.role, part) ?? [])
  const writer = isOfLower(message, reader) ? writerOf(message) : undefined
  return [...summary, ...(memories === undefined ? [] : [memories]), ...parts, ...(writer ? [writer.source] : [])]
}

type Part = Exclude<ModelMessage, { role: 'system' }>['content'][number]

function untrustedInPart(role: ModelMessage['role'], part: Part): string | undefined {
  // Text of the model itself is not evidence of a frame.
  if (part.type === 'text') {
    if (role !== 'user') return undefined
    return untrustedSource(part.text) ?? (namesReadableFile(part.text) ? 'a file of a message' : undefined)
  }
  if (part.type !== 'tool-result') return undefined
  if (role === 'assistant') return `${part.toolName} of the provider`
  if (!('value' in part.output)) return undefined
  // The executor writes every result as text, framed or not. Nothing is known about a result of another form.
  const { value } = part.output
  return typeof value === 'string' ? untrustedSource(value) : part.toolName
}
