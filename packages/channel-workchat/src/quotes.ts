/** Reads the messages that people quote or pass on, and the names of senders, of which events have only the ids. */
import { ConversationOrder, pathSegment, QuotedMessages, SenderNames, signalScope } from '@sluice/kit'
import { list, members, textAt } from '@sluice/kit/foreign-json'
import { errorText, forwardedPart, type Host, type Inbound, namePart } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'
import { MERGED, MERGED_TYPE } from './content.ts'
import { type Bot, readMessage } from './parse.ts'
import { passedOnFile, passedOnWords, readItems } from './passed-on.ts'

/** The platform expects its acknowledgement within 3 s. Messages that are passed on and take longer are read when the turn begins. */
const WAIT_MS = 1500

export interface CompletingOptions {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly api: WorkchatApi
  readonly bot: Bot
  isAllowed(sender: string): boolean
}

/**
 * Returns a function that resolves to a message with its quote, the messages that it passes on, and the name of its sender. Sources: "Get the content of a specified
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
  const order = new ConversationOrder()
  const passingOn = async (message: Inbound): Promise<Pick<Inbound, 'forwarded'>> => {
    if (message.forwarded?.text !== MERGED || message.overheardOnly) return {}
    const id = message.changes?.message ?? message.id
    try {
      using limit = signalScope([], WAIT_MS, host.clock)
      return forwardedPart({ text: passedOnWords(await readItems(api, id, limit.signal), id, bot) })
    } catch (error) {
      host.log.info('messages that were passed on not read yet', { channel: 'workchat', message: id, reason: errorText(error) })
      return forwardedPart({ text: MERGED, attachments: [passedOnFile(id)] })
    }
  }
  const quotes = new QuotedMessages({
    host,
    channel: 'workchat',
    async read(id, conversation, signal) {
      const items = await readItems(api, id, signal)
      const item = list(items)
        .map(members)
        .find(({ message_id }) => message_id === id)
      const message = item?.chat_id === conversation ? readMessage(item, bot) : undefined
      return message && item?.msg_type === MERGED_TYPE ? { ...message, ...forwardedPart({ text: passedOnWords(items, id, bot) }) } : message
    },
  })
  return async (message) => {
    const { inReplyTo = '', to } = message
    const quoting = inReplyTo === to.thread ? quotes.quotingOnce(message, inReplyTo) : quotes.quoting(message, inReplyTo)
    const [quoted, { name = '' }, passedOn] = await Promise.all([quoting, names.named(message), order.after(to.to, passingOn(message))])
    return { ...quoted, ...passedOn, ...namePart(name) }
  }
}
