/** The text of a room before the message of a turn: overheard messages, the beginning of a thread, and the language of the room. */
import { isOfLower, type Writer, writerOf } from '@sluice/agent'
import {
  agentKey,
  agentOfSession,
  type Channel,
  chatSessionKey,
  frameUntrusted,
  type ModelMessage,
  type OwnedStore,
  oneLine,
  sharedRoom,
  sourceOfMessage,
  untrustedSource,
  withoutFrames,
} from '@sluice/sdk'
import type { Overheard, OverheardLine, ReadingTurn } from './overheard.ts'
import { isVouchedFor } from './vouched-for.ts'

/** The messages of the room that a thread begins with, and the longest part of each. */
const MESSAGES_MAX = 12
const CHARS_MAX = 400
const NAME_CHARS_MAX = 64

export interface RoomTextOptions {
  readonly owned: Pick<OwnedStore, 'sessions'>
  readonly overheard: Pick<Overheard, 'before' | 'take'>
  readonly channel: Pick<Channel, 'name'>
  readonly session: string
  /** The writer of the message, before which the text stands. */
  readonly writer: Writer
  readonly turn: ReadingTurn
  readonly language: string | undefined
}

/** Resolves to the text, empty for a session of one person without a language. The turn takes the overheard messages in it. */
export async function roomText(options: RoomTextOptions): Promise<string> {
  const { overheard, session, turn, language } = options
  const lines = sharedRoom(session) ? await overheard.take(session, turn) : []
  const heard = lines.map((line) => heardText(line, options))
  const texts = [
    ...(await beforeThread(options)),
    ...(heard.length > 0 ? ['(Written in the room since, and not to you:)', ...heard, '(The message to you:)'] : []),
    ...(language === undefined ? [] : [`(Answer in ${oneLine(language, NAME_CHARS_MAX)}.)`]),
  ]
  return texts.length === 0 ? '' : `${texts.join('\n')}\n`
}

/** Frames the words of strangers, and of people of a lower standing than the writer. */
function heardText({ sender, name, standing, text }: OverheardLine, { channel, writer }: RoomTextOptions): string {
  const who = JSON.stringify(oneLine(name === undefined ? sender : `${name} (${sender})`, NAME_CHARS_MAX))
  return isVouchedFor(standing, writer.standing) ? `${who}: ${text}` : frameUntrusted(sourceOfMessage(channel.name, sender), text)
}

/** Resolves to the last messages of the room for the first turn of a thread, else to no text. */
async function beforeThread(options: RoomTextOptions): Promise<string[]> {
  const { owned, overheard, session, writer, turn } = options
  const room = sharedRoom(session)
  if (room?.thread === undefined || (await owned.sessions.get(session))) return []
  const { thread: _, ...whole } = room
  const before = agentKey(agentOfSession(session), chatSessionKey(whole))
  const { messages } = await owned.sessions.conversation(before, MESSAGES_MAX)
  const heard = (await overheard.before(before, turn.atMs)).slice(-MESSAGES_MAX).map((line) => heardText(line, options))
  const lines = [...messages.flatMap((message) => saidText(message, writer) ?? []), ...heard]
  return lines.length === 0 ? [] : ['(The last messages of the room before this thread:)', ...lines, '(The thread begins.)']
}

function saidText(message: ModelMessage, reader: Writer): string | undefined {
  if (message.role !== 'user' && message.role !== 'assistant') return undefined
  const text = message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
  const words = shortened(withoutFrames(text).trim())
  if (words === '') return undefined
  if (message.role === 'assistant') return `You: ${words}`
  const writer = writerOf(message)
  const source = untrustedSource(text) ?? (isOfLower(message, reader) ? writer?.source : undefined)
  return source === undefined ? `${JSON.stringify(writer?.source ?? 'a message')}: ${words}` : frameUntrusted(source, words)
}

const shortened = (text: string): string => (text.length <= CHARS_MAX ? text : `${text.slice(0, CHARS_MAX).toWellFormed()}…`)
