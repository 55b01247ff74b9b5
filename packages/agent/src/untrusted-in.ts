/** Finds untrusted text in the messages that a model reads: framed text, files of messages, and results of tools that a provider runs. */
import { type Conversation, type ModelMessage, untrustedSource } from '@sluice/sdk'
import { namesReadableFile } from './attached-files.ts'

/** Returns the source of the newest untrusted text; undefined without any. The stored messages alone decide, so a resumed turn finds the same. */
export function untrustedIn({ messages, summary }: Pick<Conversation, 'messages' | 'summary'>, current: readonly ModelMessage[]) {
  for (const list of [current, messages]) {
    for (const message of list.toReversed()) {
      const source = untrustedInMessage(message)
      if (source !== undefined) return source
    }
  }
  return summary?.untrusted ? 'the summary of earlier messages' : undefined
}

export function untrustedInMessage(message: ModelMessage): string | undefined {
  if (message.role === 'system') return undefined
  for (const part of message.content) {
    const source = untrustedInPart(message.role, part)
    if (source !== undefined) return source
  }
  return undefined
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
