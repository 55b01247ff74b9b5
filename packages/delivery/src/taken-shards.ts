/**
 * The shards whose waiting rows this process has taken up. A message that arrives while the rows of its shard are still being read
 * from the store enters its lane after them.
 */
import { concerns } from '@sluice/kit'
import type { Inbound, OwnedStore, StoreChange, WaitingMessage } from '@sluice/sdk'

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
    this.#taken.set(owned, { owned, arrived: [] })
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
    this.#taken.delete(owned)
  }

  #of(shard: number): Taken | undefined {
    for (const taken of this.#taken.values()) {
      const { shards } = taken.owned.lease
      if (shards && shard >= shards.from && shard <= shards.to) return taken
    }
    return undefined
  }
}
