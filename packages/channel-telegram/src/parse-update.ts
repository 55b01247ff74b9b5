/** Parses an update of the Bot API: a message, or the press of a button. */
import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Inbound } from '@sluice/sdk'
import { addressedText, type Bot, repliedTo } from './mention.ts'
import { attachmentOf, describeContent } from './message-content.ts'
import { idText, messageId } from './message-id.ts'

export interface Parsed {
  /** Undefined if the update contains no message for the bot. `query` must be answered nevertheless. */
  readonly inbound?: Inbound
  /** The sender's current user name; empty if there is none. */
  readonly username: string
  /** The id of a press. Its button shows a progress indicator until the query is answered. */
  readonly query?: string
}

/**
 * Returns undefined for an update without a message for the bot: messages of bots, of the service and on behalf of a chat, and,
 * with `mentionOnly`, messages in a group that are not addressed to the bot. The value of a press comes from the sender's
 * client and need not be the value of any button.
 */
export function parseUpdate(update: unknown, bot: Bot, mentionOnly: boolean): Parsed | undefined {
  const { message, callback_query: query } = members(update)
  if (message !== undefined) return parseMessage(members(message), bot, mentionOnly)
  return query === undefined ? undefined : parsePress(members(query), bot)
}

function parseMessage(message: Members, bot: Bot, mentionOnly: boolean): Parsed | undefined {
  const chat = idText(members(message.chat).id)
  const number = idText(message.message_id)
  const from = members(message.from)
  const sender = idText(from.id)
  // A message on behalf of a chat carries the id of a bot or of the service as its sender.
  if (chat === '' || number === '' || sender === '' || from.is_bot === true || message.sender_chat !== undefined) return undefined
  const addressed = addressedText(message, bot)
  const isGroup = ['group', 'supergroup'].includes(text(members(message.chat).type))
  if (isGroup && mentionOnly && !addressed.isAddressed) return undefined
  const written = isGroup ? addressed.text : text(message.text) || text(message.caption)
  const attachment = attachmentOf(message)
  const content = written.trim() === '' ? describeContent(message) : written
  if (content === '' && !attachment) return undefined
  const quoted = idText(repliedTo(message).message_id)
  return {
    username: text(from.username),
    inbound: {
      id: messageId(chat, number),
      account: bot.id,
      sender,
      to: { to: chat, ...threadOf(message), replyTo: number },
      text: content,
      ...(typeof message.date === 'number' && message.date > 0 && { sentAtMs: message.date * 1000 }),
      ...(attachment && { attachments: [attachment] }),
      ...(quoted !== '' && { inReplyTo: messageId(chat, quoted) }),
    },
  }
}

function parsePress({ id, from, data, message }: Members, bot: Bot): Parsed | undefined {
  const query = text(id)
  if (query === '') return undefined
  const shown = members(message)
  const chat = idText(members(shown.chat).id)
  const number = idText(shown.message_id)
  const sender = idText(members(from).id)
  const username = text(members(from).username)
  const isComplete = chat !== '' && number !== '' && sender !== '' && text(data) !== '' && members(from).is_bot !== true
  if (!isComplete) return { username, query }
  return {
    username,
    query,
    inbound: {
      id: `cb:${query}`,
      account: bot.id,
      sender,
      to: { to: chat, ...threadOf(shown), replyTo: number },
      text: '',
      pressed: { message: messageId(chat, number), value: text(data) },
    },
  }
}

/** Only topics are threads that can be written to. Outside of topics, the API uses a thread id for a chain of replies. */
const threadOf = ({ is_topic_message: isTopic, message_thread_id: thread }: Members): { thread?: string } =>
  isTopic === true && idText(thread) !== '' ? { thread: idText(thread) } : {}
