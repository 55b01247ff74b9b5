/** The homes of a part of Sluice: the shards of the leases that it works under, or everything without a lease. */
import { ALL_SHARDS, type Lease, type OwnedStore, SHARDS, type StoreChange } from '@sluice/sdk'

/** The stores of one lease, under which a part of Sluice works. A process that owns no shards works without one. */
export interface Home {
  readonly lease?: Lease
}

export class Homes<Own extends Home> implements Iterable<Own> {
  readonly #homes = new Set<Own>()
  readonly #byShard: (Own | undefined)[] = Array.from({ length: SHARDS })

  get size(): number {
    return this.#homes.size
  }

  [Symbol.iterator](): Iterator<Own> {
    return this.#homes.values()
  }

  /** Adds a home until `delete`. `onLost` is called when its lease is lost, after it was removed. */
  add(home: Own, onLost?: () => void): void {
    if (home.lease?.lost.aborted) return
    this.#homes.add(home)
    const { from, to } = home.lease?.shards ?? ALL_SHARDS
    this.#byShard.fill(home, from, to + 1)
    const lose = (): void => {
      this.delete(home)
      onLost?.()
    }
    home.lease?.lost.addEventListener('abort', lose, { once: true })
  }

  has(home: Own): boolean {
    return this.#homes.has(home)
  }

  delete(home: Own): void {
    if (!this.#homes.delete(home)) return
    const { from, to } = home.lease?.shards ?? ALL_SHARDS
    for (let shard = from; shard <= to; shard++) if (this.#byShard[shard] === home) this.#byShard[shard] = undefined
  }

  /** Returns the home of a shard; undefined when another process works there. */
  of(shard: number): Own | undefined {
    return this.#byShard[shard]
  }

  /** Returns the homes that a change may concern. */
  concernedBy(change: StoreChange): readonly Own[] {
    return [...this.#homes].filter(({ lease }) => !lease || concerns(change, { lease }))
  }
}

/** Whether the change may concern the shards of the lease. */
export function concerns({ shards: changed, among }: StoreChange, { lease: { shards } }: Pick<OwnedStore, 'lease'>): boolean {
  if (among && shards?.from === shards?.to) return shards !== null && among.has(shards.from)
  return changed === null || (shards !== null && shards.from <= changed.to && changed.from <= shards.to)
}
