/** A message as the gateway and the history bring it: is it one for us, and what does it say. */

import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import type { Inbound } from '@sluice/sdk'
import { forwardedIn, type Names, textOf } from './message-text.ts'
import { parseAttachments } from './parse-attachments.ts'
import { isSnowflake, snowflakeMs } from './snowflake.ts'

export interface Listener extends Names {
  readonly account: string
  readonly guild: string | undefined
  readonly listenToBots: boolean
  readonly mentionOnly: boolean
  /** A thread the bot opened: what is said in it is said to the bot. */
  isOwnThread(channel: string): boolean
}

/** Where a message stands. */
export interface Place {
  readonly channel: string
  /** Empty: a direct conversation. */
  readonly guild: string
}

const PLAIN = 0
const REPLY = 19
/** How a message refers to another: by quoting it; anything else forwards it. */
const QUOTES = 0

/** Undefined for a message that is none, or of a server that is not listened to. */
export function placeOf({ guild }: Pick<Listener, 'guild'>, message: Members): Place | undefined {
  const { channel_id, guild_id } = message
  if (!isSnowflake(channel_id)) return undefined
  const found = { channel: channel_id, guild: text(guild_id) }
  return guild === undefined || found.guild === '' || found.guild === guild ? found : undefined
}

/** Undefined for what is not said to us: our own messages, those of bots, events that look like messages, empty ones. */
export function parseMessage(listener: Listener, message: Members, { channel, guild }: Place): Inbound | undefined {
  const { id, type } = message
  const author = members(message.author)
  const sender = author.id
  if (!isSnowflake(id) || !isSnowflake(sender) || (type !== PLAIN && type !== REPLY)) return undefined
  const own = listener.own()
  if (sender === own || sender === listener.account) return undefined
  if (!listener.listenToBots && (author.bot === true || text(message.webhook_id) !== '')) return undefined
  if (listener.mentionOnly && guild !== '' && !listener.isOwnThread(channel) && !isToUs(message, guild, listener)) return undefined
  const said = textOf(message, guild, listener)
  const files = [message, ...forwardedIn(message)].flatMap(({ attachments }) => parseAttachments(attachments))
  if (said === '' && files.length === 0) return undefined
  const answered = answeredBy(message)
  return {
    id,
    account: listener.account,
    sender,
    to: { to: channel, replyTo: id },
    text: said,
    sentAtMs: snowflakeMs(id),
    ...(files.length > 0 && { attachments: files }),
    ...(answered !== undefined && { inReplyTo: answered }),
  }
}

function isToUs(message: Members, guild: string, listener: Listener): boolean {
  const own = listener.own()
  const content = text(message.content)
  if (content.includes(`<@${own}>`) || content.includes(`<@!${own}>`)) return true
  if (list(message.mentions).some((user) => members(user).id === own)) return true
  if (list(message.mention_roles).some((role) => listener.isOwnRole(guild, text(role)))) return true
  return members(members(message.referenced_message).author).id === own
}

function answeredBy({ message_reference }: Members): string | undefined {
  const { message_id, type = QUOTES } = members(message_reference)
  return type === QUOTES && isSnowflake(message_id) ? message_id : undefined
}
