/** The order in which messages enter their lanes. */
import type { ClusterStore, Inbound, OwnedStore, Store, StoreChange, WaitingMessage } from '@sluice/sdk'
import type { ArrivedRow } from '../inbox/taken-shards.ts'

export interface ArrivalOrder {
  /** Enters a message that was just stored here. Returns false if it was not queued. */
  arrived(row: ArrivedRow, owned: OwnedStore): boolean
  /** Enters the messages of a change of another process. Returns false when the change does not name them: all rows are read then. */
  stored(change: StoreChange): boolean
}

export interface ArrivalOrderOptions {
  /** Queues a message that has just arrived here. Returns false if it was not queued. */
  enter(row: WaitingMessage, owned: OwnedStore, message: Inbound): boolean
  /** Queues a message of the store, with its content if it has arrived here. Returns false if it was not queued. */
  enterStored(row: WaitingMessage, arrived: Inbound | undefined): boolean
  /** Called for each message that arrived here and was not queued, after `arrived` has returned. */
  left(row: WaitingMessage): void
  /** Called when the store cannot be read. The messages stay there. */
  failed(error: unknown): void
}

/** Without a cluster, messages enter as they arrive. */
export const arrivalOrder = ({ cluster }: Pick<Store, 'cluster'>, options: ArrivalOrderOptions): ArrivalOrder =>
  cluster ? new MessagesInOrder(cluster, options) : new AsTheyArrive(options)

class AsTheyArrive implements ArrivalOrder {
  readonly #options: Pick<ArrivalOrderOptions, 'enter'>

  constructor(options: Pick<ArrivalOrderOptions, 'enter'>) {
    this.#options = options
  }

  arrived({ row, message }: ArrivedRow, owned: OwnedStore): boolean {
    return this.#options.enter(row, owned, message)
  }

  stored(): boolean {
    return false
  }
}

/**
 * Enters messages of a cluster in the order in which they were stored. Any node may have stored the message before the one that has just
 * arrived, so that the messages of a session are read from the store before one of them enters its lane. Messages that arrive during a
 * read share the next one.
 */
class MessagesInOrder implements ArrivalOrder {
  readonly #cluster: Pick<ClusterStore, 'messagesBeside'>
  readonly #options: ArrivalOrderOptions
  /** Messages that no read has covered, each with its row if it arrived here; bounded by the messages of requests under way. */
  #stored = new Map<number, ArrivedRow | undefined>()
  #isReading = false

  constructor(cluster: Pick<ClusterStore, 'messagesBeside'>, options: ArrivalOrderOptions) {
    this.#cluster = cluster
    this.#options = options
  }

  arrived(row: ArrivedRow): boolean {
    this.#stored.set(row.row.number, row)
    this.#begin()
    return true
  }

  stored({ messages }: StoreChange): boolean {
    if (!messages) return false
    for (const number of messages) if (!this.#stored.has(number)) this.#stored.set(number, undefined)
    this.#begin()
    return true
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
        for (const row of await this.#cluster.messagesBeside([...batch.keys()]))
          if (this.#options.enterStored(row, batch.get(row.number)?.message)) entered.add(row.number)
      } catch (error) {
        this.#options.failed(error)
      }
      for (const [number, arrived] of batch) if (arrived && !entered.has(number)) this.#options.left(arrived.row)
    }
    this.#isReading = false
  }
}
