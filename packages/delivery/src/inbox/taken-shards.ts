/**
 * The shards whose waiting rows this process has taken up. A message that arrives while the rows of its shard are still being read
 * from the store enters its lane after them.
 */
import { concerns } from '@sluice/ownership'
import { type Inbound, type OwnedStore, SHARDS, type StoreChange, type WaitingMessage } from '@sluice/sdk'

/** A row that has just been stored, and its message. */
export interface ArrivedRow {
  readonly row: WaitingMessage
  readonly message: Inbound
}

interface Taken {
  readonly owned: OwnedStore
  /** Messages that arrived while older rows were read; undefined once these have entered. */
  arrived: ArrivedRow[] | undefined
}

export class TakenShards {
  readonly #taken = new Map<OwnedStore, Taken>()
  /** The taken leases by shard. */
  readonly #byShard: (Taken | undefined)[] = Array.from({ length: SHARDS })

  /** Returns the leases whose rows a change may concern. */
  leases(change: StoreChange): readonly OwnedStore[] {
    return [...this.#taken.keys()].filter((owned) => concerns(change, owned))
  }

  /** Returns the lease of this shard; undefined when another process owns it, or its rows have not been asked for yet. */
  of(shard: number): OwnedStore | undefined {
    return this.#of(shard)?.owned
  }

  /** Holds back arriving messages of these shards until `opened`. */
  take(owned: OwnedStore): void {
    const taken: Taken = { owned, arrived: [] }
    this.#taken.set(owned, taken)
    const { shards } = owned.lease
    if (shards) this.#byShard.fill(taken, shards.from, shards.to + 1)
  }

  has(owned: OwnedStore): boolean {
    return this.#taken.has(owned)
  }

  /** Returns the messages that arrived meanwhile; from now on they enter at once. */
  opened(owned: OwnedStore): readonly ArrivedRow[] {
    const taken = this.#taken.get(owned)
    const arrived = taken?.arrived ?? []
    if (taken) taken.arrived = undefined
    return arrived
  }

  /** Holds back a message whose shard is being taken up. Returns false when it may enter its lane now. */
  holdsBack(shard: number, row: ArrivedRow): boolean {
    const arrived = this.#of(shard)?.arrived
    arrived?.push(row)
    return arrived !== undefined
  }

  drop(owned: OwnedStore): void {
    const taken = this.#taken.get(owned)
    if (!taken) return
    this.#taken.delete(owned)
    const { from, to } = owned.lease.shards ?? { from: 0, to: -1 }
    for (let shard = from; shard <= to; shard++) if (this.#byShard[shard] === taken) this.#byShard[shard] = undefined
  }

  #of(shard: number): Taken | undefined {
    return this.#byShard[shard]
  }
}
