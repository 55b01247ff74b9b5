/** Prepares the messages of a turn for its session, which any provider may continue later. */
import { fileNote, type MarkedFile, type ModelMessage } from '@sluice/sdk'
import { notesIn, withNote } from '../history/message-notes.ts'
import { type AssistantPart, isCompaction } from '../model/model-reply.ts'

type Assistant = Extract<ModelMessage, { role: 'assistant' }>

/**
 * Removes the parts that are useful only within their turn: thinking, tools that the provider ran itself, and provider metadata.
 * Joins replies that follow each other, as after a pause. The last message notes the files that the answer marks.
 */
export function storedMessages(messages: readonly ModelMessage[], files: readonly MarkedFile[]): ModelMessage[] {
  const stored: ModelMessage[] = []
  let joined = 0
  for (const message of messages) {
    const last = stored.at(-1)
    const { compaction } = notesIn(message)
    if (compaction) stored.push(withNote(message, { compaction: { ...compaction, count: compaction.count - joined } }))
    else if (message.role !== 'assistant') stored.push(message)
    else if (last?.role === 'assistant') {
      stored[stored.length - 1] = { role: 'assistant', content: [...last.content, ...publicParts(message)] }
      joined++
    } else stored.push({ role: 'assistant', content: publicParts(message) })
  }
  const answer = stored.at(-1)
  if (answer?.role === 'assistant' && files.length > 0) stored[stored.length - 1] = { ...answer, ...fileNote({ marked: files }) }
  return stored
}

const publicParts = ({ content }: Assistant): AssistantPart[] =>
  content.flatMap((part): AssistantPart[] => {
    if (part.type === 'text') return isCompaction(part) ? [] : [{ type: 'text', text: part.text }]
    if (part.type !== 'tool-call' || part.providerExecuted) return []
    const { toolCallId, toolName, input } = part
    return [{ type: 'tool-call', toolCallId, toolName, input }]
  })
