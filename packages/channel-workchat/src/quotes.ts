/** Reads the messages that people quote, of which events have only the id. */
import { pathSegment, QuotedMessages } from '@sluice/kit'
import { list, members } from '@sluice/kit/foreign-json'
import type { Host, Inbound } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'
import { type Bot, readMessage } from './parse.ts'

/** Returns a function that resolves to a message with its quote. Source: "Get the content of a specified message" of the platform's API. */
export function createQuoting(host: Pick<Host, 'clock' | 'log'>, api: WorkchatApi, bot: Bot): (message: Inbound) => Promise<Inbound> {
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
  return (message) => {
    const { inReplyTo = '', to } = message
    return inReplyTo === to.thread ? quotes.quotingOnce(message, inReplyTo) : quotes.quoting(message, inReplyTo)
  }
}
