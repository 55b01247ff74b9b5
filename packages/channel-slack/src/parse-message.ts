/** An event, or a message of a conversation's history, to the message in it, if there is one for us. */

import { type Members, text } from '@sluice/kit/foreign-json'
import type { Inbound } from '@sluice/sdk'
import { attachmentsOf } from './attachments.ts'
import type { SlackConfig } from './config.ts'
import { mentions, plainText } from './plain-text.ts'
import { isTimestamp, timestampMs } from './timestamp.ts'

/** What decides whether a message is for us, and whose it is. */
export interface Reader {
  readonly account: string
  /** The user id of the bot. */
  readonly bot: string
  readonly config: Pick<SlackConfig, 'channel_ids' | 'mention_only' | 'notification_channel_id' | 'thread_replies'>
}

const SUBTYPES = ['', 'file_share', 'thread_broadcast']
const ANY_USER_MESSAGE = ['message', 'app_mention']

/** `undefined` for everything that is no message, or none for us; never throws. */
export function parseMessage(event: Members, reader: Reader): Inbound | undefined {
  const { account, bot, config } = reader
  const [channel, sender, id] = [text(event.channel), text(event.user), text(event.ts)]
  if (!ANY_USER_MESSAGE.includes(text(event.type)) || !SUBTYPES.includes(text(event.subtype))) return undefined
  if (channel === '' || sender === '' || !isTimestamp(id)) return undefined
  if (sender === bot || text(event.bot_id) !== '') return undefined
  if (!isHeard(event, channel, reader)) return undefined
  const attachments = attachmentsOf(event)
  const plain = plainText(text(event.text), bot)
  if (plain === '' && attachments.length === 0) return undefined
  return {
    id: `${channel}:${id}`,
    account,
    sender,
    to: addressIn(channel, { message: id, thread: text(event.thread_ts) }, config),
    text: plain,
    sentAtMs: timestampMs(id),
    ...(attachments.length > 0 && { attachments }),
  }
}

/** Where what is said about a message goes. Of the first message of a thread, `thread` is its own id. */
export function addressIn(
  channel: string,
  { message, thread }: { readonly message: string; readonly thread: string },
  { thread_replies }: Pick<SlackConfig, 'thread_replies'>,
): Inbound['to'] {
  if (isTimestamp(thread) && thread !== message) return { to: channel, thread }
  return thread_replies && !isDirect(channel) ? { to: channel, thread: message } : { to: channel }
}

/** Whether the conversation is one of those configured; its messages may be ignored nevertheless. */
export const isConfigured = (channel: string, { channel_ids }: Pick<SlackConfig, 'channel_ids'>): boolean =>
  channel_ids.length === 0 || channel_ids.includes('*') || channel_ids.includes(channel)

const isDirect = (channel: string): boolean => channel.startsWith('D')

function isHeard(event: Members, channel: string, { bot, config }: Reader): boolean {
  const isInThreadOfOurs = text(event.parent_user_id) === bot
  // A prompt has to be answerable where it was sent.
  if (!isConfigured(channel, config)) return channel === config.notification_channel_id && isInThreadOfOurs
  return !config.mention_only || isDirect(channel) || isInThreadOfOurs || mentions(text(event.text), bot)
}
