/** Adds the words of the message that a message quotes, on platforms whose events have only its id. */
import { errorText, type Host, hasWordsOfOthers, type Inbound, type Quoted, quotedPart, wordsOf } from '@sluice/sdk'
import { BoundedMap } from '../limits/bounded-map.ts'
import { signalScope } from '../time/signal-scope.ts'
import { ConversationOrder } from './conversation-order.ts'

/** Platforms expect the acknowledgement of an event within 3 s. */
const WAIT_MS = 1500
const MESSAGES_MAX = 2000
const UNREADABLE = '[a message that could not be read]'

/** A message as the platform returns it. */
export interface ReadMessage extends Pick<Inbound, 'text' | 'things' | 'forwarded' | 'attachments'> {
  /** The id is empty for a program that writes in the name of a person. */
  readonly author: { readonly id: string; readonly name?: string }
  /** Whether the bot wrote it. */
  readonly isOfBot: boolean
}

export interface QuotedMessagesOptions {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly channel: string
  /** Reads the message with this `Inbound.id`; undefined if it is gone, or not in the conversation. May throw. */
  read(id: string, conversation: string, signal: AbortSignal): Promise<ReadMessage | undefined>
}

interface Found {
  /** Undefined for a message without words and files. */
  readonly quoted?: Quoted
  /** Whether its writer has written all of its words. */
  readonly isOwn: boolean
}

export class QuotedMessages {
  readonly #options: QuotedMessagesOptions
  readonly #messages = new BoundedMap<string, Promise<Found | undefined>>(MESSAGES_MAX)
  /** The threads in which a person has written, by their first message and the person. */
  readonly #seen = new BoundedMap<string, true>(MESSAGES_MAX)
  readonly #order = new ConversationOrder()

  constructor(options: QuotedMessagesOptions) {
    this.#options = options
  }

  /**
   * Resolves to the message with the message `id` as a quote, or to the message itself for an empty `id`. Where it cannot be read, the quote
   * says so, unless the daemon looks for `inReplyTo`. No quote is read for a message with `overheardOnly`. The messages of a conversation
   * keep their order. Never rejects.
   */
  quoting(message: Inbound, id: string): Promise<Inbound> {
    const isQuoted = id === '' || id === message.id || message.quoted || hasNone(message)
    return this.#order.after(message.to.to, isQuoted ? Promise.resolve(message) : this.#withQuote(message, id))
  }

  /** Does the same for the message that begins the thread of a message, once for each person who writes there. */
  quotingOnce(message: Inbound, id: string): Promise<Inbound> {
    if (hasNone(message)) return this.quoting(message, '')
    const person = `${id}/${message.sender}`
    const isFirst = !this.#seen.has(person)
    this.#seen.set(person, true)
    return this.quoting(message, isFirst ? id : '')
  }

  async #withQuote(message: Inbound, id: string): Promise<Inbound> {
    const reading = this.#messages.get(id) ?? this.#read(id, message.to.to)
    this.#messages.set(id, reading)
    const found = await reading
    if (found) return withQuote(message, found)
    return message.inReplyTo === undefined ? { ...message, quoted: { id, text: UNREADABLE } } : message
  }

  /** Resolves to undefined for a message that is gone or could not be read. */
  async #read(id: string, conversation: string): Promise<Found | undefined> {
    const { host, channel, read } = this.#options
    try {
      using limit = signalScope([], WAIT_MS, host.clock)
      const message = await read(id, conversation, limit.signal)
      if (!message) return undefined
      const { author, isOfBot, attachments } = message
      const isOwn = !hasWordsOfOthers(message)
      return { ...quotedPart({ id, author, by: isOwn && isOfBot ? 'bot' : undefined, text: wordsOf(message), attachments }), isOwn }
    } catch (error) {
      host.log.info('quoted message not read', { channel, conversation, message: id, reason: errorText(error) })
      // The next message that quotes it has it read again.
      this.#messages.delete(id)
      return undefined
    }
  }
}

const hasNone = ({ changes, pressed, overheardOnly }: Inbound): boolean => Boolean(changes || pressed || overheardOnly)

function withQuote(message: Inbound, { quoted, isOwn }: Found): Inbound {
  if (!quoted) return message
  const isReply = message.addressed === 'overheard' && quoted.by === 'bot'
  const isOfSender = isOwn && quoted.author?.id === message.sender
  return { ...message, ...(isReply && { addressed: 'reply' }), quoted: { ...quoted, ...(isOfSender && { by: 'sender' }) } }
}
