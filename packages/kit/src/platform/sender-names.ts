/** Looks up the names of senders, on platforms whose messages have only ids. */
import { AppError, errorText, type Host, type Inbound, namePart } from '@sluice/sdk'
import { BoundedMap } from '../limits/bounded-map.ts'
import { signalScope } from '../time/signal-scope.ts'
import { ConversationOrder } from './conversation-order.ts'

/** Platforms expect the acknowledgement of an event within 3 s, some within 2 s. */
const WAIT_MS = 1500
const NAMES_MAX = 5000
/** How long a name is used. People rarely change it. */
const KNOWN_MS = 86_400_000
/** How long no name is looked up after a failure that is not about one person, such as a missing permission. */
const PAUSE_MS = 600_000

export interface SenderNamesOptions {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly channel: string
  /** Whether a sender may write: the names of others are not looked up. */
  isAllowed(sender: string): boolean
  /** Reads the name of the sender of a message; empty without one. May throw: `invalid_request` is about this sender alone. */
  read(message: Inbound, signal: AbortSignal): Promise<string>
}

interface Known {
  readonly name: Promise<string>
  readonly untilMs: number
}

export class SenderNames {
  readonly #options: SenderNamesOptions
  readonly #names = new BoundedMap<string, Known>(NAMES_MAX)
  readonly #order = new ConversationOrder()
  #pausedUntilMs = 0

  constructor(options: SenderNamesOptions) {
    this.#options = options
  }

  /** Resolves to a message with the name of its sender, if there is one. The messages of a conversation keep their order. Never rejects. */
  named(message: Inbound): Promise<Inbound> {
    return this.#order.after(message.to.to, this.#withName(message))
  }

  async #withName(message: Inbound): Promise<Inbound> {
    const { sender, name, pressed, changes } = message
    const isNamed = name !== undefined || sender === '' || pressed !== undefined || changes?.what === 'deleted'
    if (isNamed || !this.#options.isAllowed(sender)) return message
    return { ...message, ...namePart(await this.#nameOf(message)) }
  }

  #nameOf(message: Inbound): Promise<string> {
    const nowMs = this.#options.host.clock.nowMs()
    const known = this.#names.get(message.sender)
    if (known && nowMs < known.untilMs) return known.name
    if (nowMs < this.#pausedUntilMs) return known?.name ?? Promise.resolve('')
    const name = this.#read(message, known)
    // The new name takes the place of the newest, and does not keep the age of the former one.
    this.#names.delete(message.sender)
    this.#names.set(message.sender, { name, untilMs: nowMs + KNOWN_MS })
    return name
  }

  async #read(message: Inbound, before: Known | undefined): Promise<string> {
    const { host, channel, read } = this.#options
    try {
      using limit = signalScope([], WAIT_MS, host.clock)
      return await read(message, limit.signal)
    } catch (error) {
      if (error instanceof AppError && error.code === 'invalid_request') return ''
      host.log.info('names of senders not looked up', { channel, sender: message.sender, reason: errorText(error) })
      this.#pausedUntilMs = host.clock.nowMs() + PAUSE_MS
      // The next message after the pause has the name looked up again.
      this.#names.delete(message.sender)
      return (await before?.name) ?? ''
    }
  }
}
