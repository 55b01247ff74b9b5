/** Finds untrusted text in the messages that a model reads: framed text, files of messages, and results of tools that a provider runs. */
import { type Conversation, type ModelMessage, untrustedSource } from '@sluice/sdk'
import { namesReadableFile } from './attached-files.ts'
import { notesIn } from './message-notes.ts'

/** Returns the sources of untrusted text, the newest first. The stored messages alone decide, so a resumed turn finds the same. */
export function sourcesIn({ messages, summary }: Pick<Conversation, 'messages' | 'summary'>, current: readonly ModelMessage[]): string[] {
  const found = [current, messages].flatMap((list) => list.toReversed().flatMap(sourcesInMessage))
  return [...new Set([...found, ...(summary?.untrusted ? ['the summary of earlier messages'] : [])])]
}

export function sourcesInMessage(message: ModelMessage): string[] {
  if (message.role === 'system') return []
  const summary = notesIn(message).compaction?.untrusted === true ? ['the summary of earlier messages'] : []
  return [...summary, ...message.content.flatMap((part) => untrustedInPart(message.role, part) ?? [])]
}

type Part = Exclude<ModelMessage, { role: 'system' }>['content'][number]

function untrustedInPart(role: ModelMessage['role'], part: Part): string | undefined {
  // What the model itself has written is no evidence of a frame.
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
