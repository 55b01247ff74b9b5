/**
 * Enters messages of a cluster in the order in which they were stored. Any node may have stored the message before the one that has just
 * arrived, so that the messages of a session are read from the store before one of them enters its lane. Messages that arrive during a
 * read share the next one.
 */
import type { Inbound, WaitingMessage } from '@sluice/sdk'
import type { ArrivedRow } from './taken-shards.ts'

export interface MessagesInOrderOptions {
  /** Reads the unfinished messages of the sessions of these messages, oldest first. */
  read(numbers: readonly number[]): Promise<readonly WaitingMessage[]>
  /** Queues a message, with its content if it has arrived here. Returns false if it was not queued. */
  enter(row: WaitingMessage, arrived: Inbound | undefined): boolean
  /** Called for each message that arrived here and was not queued. */
  left(row: WaitingMessage): void
  /** Called when the store cannot be read. The messages stay there. */
  failed(error: unknown): void
}

export class MessagesInOrder {
  readonly #options: MessagesInOrderOptions
  /** Messages that no read has covered, each with its row if it arrived here; bounded by the messages of requests under way. */
  #stored = new Map<number, ArrivedRow | undefined>()
  #isReading = false

  constructor(options: MessagesInOrderOptions) {
    this.#options = options
  }

  /** Enters a message that was just stored here, after earlier ones of its session. */
  arrived(row: ArrivedRow): void {
    this.#stored.set(row.row.number, row)
    this.#begin()
  }

  /** Enters a message that another process has stored. */
  stored(number: number): void {
    if (!this.#stored.has(number)) this.#stored.set(number, undefined)
    this.#begin()
  }

  #begin(): void {
    if (this.#isReading) return
    this.#isReading = true
    setImmediate(() => void this.#run())
  }

  async #run(): Promise<void> {
    while (this.#stored.size > 0) {
      const batch = this.#stored
      this.#stored = new Map()
      const entered = new Set<number>()
      try {
        for (const row of await this.#options.read([...batch.keys()]))
          if (this.#options.enter(row, batch.get(row.number)?.message)) entered.add(row.number)
      } catch (error) {
        this.#options.failed(error)
      }
      for (const [number, arrived] of batch) if (arrived && !entered.has(number)) this.#options.left(arrived.row)
    }
    this.#isReading = false
  }
}
