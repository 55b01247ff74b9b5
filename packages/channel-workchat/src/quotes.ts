/** Reads the messages that people quote and the names of senders, of which events have only the ids. */
import { pathSegment, QuotedMessages, SenderNames } from '@sluice/kit'
import { list, members, textAt } from '@sluice/kit/foreign-json'
import { type Host, type Inbound, namePart } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'
import { type Bot, readMessage } from './parse.ts'

export interface CompletingOptions {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly api: WorkchatApi
  readonly bot: Bot
  isAllowed(sender: string): boolean
}

/**
 * Returns a function that resolves to a message with its quote and the name of its sender. Sources: "Get the content of a specified
 * message" and "Obtain user information" of the platform's API.
 */
export function createCompleting({ host, api, bot, isAllowed }: CompletingOptions): (message: Inbound) => Promise<Inbound> {
  const names = new SenderNames({
    host,
    channel: 'workchat',
    isAllowed,
    async read({ sender }, signal) {
      const query = { user_id_type: 'open_id' }
      return textAt(await api.call({ method: 'GET', path: `/contact/v3/users/${pathSegment(sender)}`, query, signal }), 'user.name')
    },
  })
  const quotes = new QuotedMessages({
    host,
    channel: 'workchat',
    async read(id, conversation, signal) {
      const { items } = await api.call({ method: 'GET', path: `/im/v1/messages/${pathSegment(id)}`, signal })
      // Messages that were passed on together follow the message itself.
      const item = list(items)
        .map(members)
        .find(({ message_id }) => message_id === id)
      return item?.chat_id === conversation ? readMessage(item, bot) : undefined
    },
  })
  return async (message) => {
    const { inReplyTo = '', to } = message
    const quoting = inReplyTo === to.thread ? quotes.quotingOnce(message, inReplyTo) : quotes.quoting(message, inReplyTo)
    const [quoted, { name = '' }] = await Promise.all([quoting, names.named(message)])
    return { ...quoted, ...namePart(name) }
  }
}
