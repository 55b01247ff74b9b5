/** What a conversation of a thread begins with: the last messages of its room. */
import { isOfLower, type Writer, writerOf } from '@sluice/agent'
import {
  agentKey,
  agentOfSession,
  chatSessionKey,
  frameUntrusted,
  type ModelMessage,
  type OwnedStore,
  sharedRoom,
  untrustedSource,
  withoutFrames,
} from '@sluice/sdk'

/** The messages of the room that a thread begins with, and the longest part of each. */
const MESSAGES_MAX = 12
const CHARS_MAX = 400

/**
 * Resolves to the last messages of the room, for the first turn of a thread that the people of the room share; to an empty text for any other
 * turn. The words of people who stand lower than the writer of the thread are framed.
 */
export async function roomBeforeThread({ sessions }: Pick<OwnedStore, 'sessions'>, session: string, writer: Writer): Promise<string> {
  const room = sharedRoom(session)
  if (room?.thread === undefined || (await sessions.get(session))) return ''
  const { thread: _, ...whole } = room
  const { messages } = await sessions.conversation(agentKey(agentOfSession(session), chatSessionKey(whole)), MESSAGES_MAX)
  const lines = messages.flatMap((message) => lineOf(message, writer) ?? [])
  return lines.length === 0 ? '' : `(The last messages of the room before this thread:)\n${lines.join('\n')}\n(The thread begins.)\n\n`
}

function lineOf(message: ModelMessage, reader: Writer): string | undefined {
  if (message.role !== 'user' && message.role !== 'assistant') return undefined
  const text = message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
  const words = shortened(withoutFrames(text).trim())
  if (words === '') return undefined
  if (message.role === 'assistant') return `You: ${words}`
  const writer = writerOf(message)
  const source = untrustedSource(text) ?? (isOfLower(message, reader) ? writer?.source : undefined)
  const line = `${JSON.stringify(writer?.source ?? 'a message')}: ${words}`
  return source === undefined ? line : frameUntrusted(source, words)
}

const shortened = (text: string): string => (text.length <= CHARS_MAX ? text : `${text.slice(0, CHARS_MAX).toWellFormed()}…`)
