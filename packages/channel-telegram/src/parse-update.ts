/** An update as a message to us: what somebody wrote, or the button somebody pressed. */

import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Inbound } from '@sluice/sdk'
import { answeredIn, type Bot, hear } from './mention.ts'
import { attachmentOf, wordsOf } from './message-content.ts'
import { messageId } from './message-id.ts'

export interface Parsed {
  /** Undefined: nothing for us, but `query` may still want its answer. */
  readonly inbound?: Inbound
  /** What the sender calls themselves at the moment; empty for somebody without a name. */
  readonly username: string
  /** A pressed button turns until this query is answered. */
  readonly query?: string
}

export interface ParseOptions {
  readonly bot: Bot
  readonly mentionOnly: boolean
}

/**
 * Undefined for what is no message to us: of bots, of the service, on behalf of a chat, or, with `mentionOnly`, in a group
 * and not meant for the bot. The value of a press is what the presser's client says: it may never have been on a button.
 */
export function parseUpdate(update: unknown, options: ParseOptions): Parsed | undefined {
  const { message, callback_query: query } = members(update)
  if (message !== undefined) return parseMessage(members(message), options)
  return query === undefined ? undefined : parsePress(members(query), options)
}

function parseMessage(message: Members, { bot, mentionOnly }: ParseOptions): Parsed | undefined {
  const chat = idText(members(message.chat).id)
  const number = idText(message.message_id)
  const from = members(message.from)
  const sender = idText(from.id)
  // A chat that speaks does so under the id of a bot, or of the service.
  if (chat === '' || number === '' || sender === '' || from.is_bot === true || message.sender_chat !== undefined) return undefined
  const { isAddressed, text: said } = hear(message, bot)
  const isGroup = ['group', 'supergroup'].includes(text(members(message.chat).type))
  if (isGroup && mentionOnly && !isAddressed) return undefined
  const words = isGroup ? said : text(message.text) || text(message.caption)
  const attachment = attachmentOf(message)
  const content = words.trim() === '' ? wordsOf(message) : words
  if (content === '' && !attachment) return undefined
  const answered = idText(answeredIn(message).message_id)
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
      ...(answered !== '' && { inReplyTo: messageId(chat, answered) }),
    },
  }
}

function parsePress({ id, from, data, message }: Members, { bot }: ParseOptions): Parsed | undefined {
  const query = text(id)
  if (query === '') return undefined
  const shown = members(message)
  const chat = idText(members(shown.chat).id)
  const number = idText(shown.message_id)
  const sender = idText(members(from).id)
  const username = text(members(from).username)
  const isPress = chat !== '' && number !== '' && sender !== '' && text(data) !== '' && members(from).is_bot !== true
  if (!isPress) return { username, query }
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

/** Outside of topics a thread is only the chain of replies, in which nothing can be sent. */
const threadOf = ({ is_topic_message: isTopic, message_thread_id: thread }: Members): { thread?: string } =>
  isTopic === true && idText(thread) !== '' ? { thread: idText(thread) } : {}

/** Ids are whole numbers of at most 52 bits. */
const idText = (value: unknown): string => (Number.isSafeInteger(value) && value !== 0 ? String(value) : '')
