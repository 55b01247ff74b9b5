/** The leases of shards that this process holds, and the parts of Sluice that work in the shards. */
import type { Lease, Logger, OwnedStore, Store, StoreChange } from '@sluice/sdk'
import { Homes } from './homes.ts'

/** Begins the work of the shards of a lease. The work must end when `owned.lease.lost` aborts. */
export type ShardListener = (owned: OwnedStore) => Promise<void>

interface Listening {
  readonly take: ShardListener
  readonly leave: ShardListener | undefined
}

export class HeldShards {
  readonly #store: Pick<Store, 'under'>
  readonly #log: Logger
  readonly #held = new Map<Lease, OwnedStore>()
  /** The leases that are not being given up. */
  readonly #staying = new Homes<OwnedStore>()
  /** The leases that are being given up, each with the promise of its release. */
  readonly #leaving = new Map<OwnedStore, Promise<void>>()
  readonly #listeners = new Set<Listening>()

  constructor({ store, log }: { readonly store: Pick<Store, 'under'>; readonly log: Logger }) {
    this.#store = store
    this.#log = log
  }

  get size(): number {
    return this.#held.size
  }

  /** The number of leases under which this process may act now: none while the database has not taken its beats. */
  get inForce(): number {
    return [...this.#held.keys()].filter((lease) => lease.mayAct()).length
  }

  /** Returns the stores of the leases that are not being given up, oldest first; with a change, only the stores that it may concern. */
  staying(change?: StoreChange): readonly OwnedStore[] {
    return change ? this.#staying.concernedBy(change) : [...this.#staying]
  }

  of(shard: number): OwnedStore | undefined {
    return this.#staying.of(shard)
  }

  /** See `Ownership.onShards`. */
  async listen(listener: ShardListener, leave?: ShardListener): Promise<() => void> {
    const taken = new WeakSet<OwnedStore>()
    // A lease that is acquired again while this listener registers would else reach it twice.
    const take: ShardListener = async (owned) => {
      if (taken.has(owned)) return
      taken.add(owned)
      await listener(owned)
    }
    const own: Listening = { take, leave: leave && (async (owned) => (taken.has(owned) ? leave(owned) : undefined)) }
    this.#listeners.add(own)
    await Promise.all(this.staying().map(take))
    return () => void this.#listeners.delete(own)
  }

  hold(lease: Lease): OwnedStore {
    const owned = this.#store.under(lease)
    this.#held.set(lease, owned)
    this.#staying.add(owned, () => this.#held.delete(lease))
    return owned
  }

  /** Holds leases and gives them to the listeners, all at once, so that they can read the work of all shards together. */
  async takeUp(leases: readonly Lease[]): Promise<void> {
    const owned = leases.map((lease) => this.hold(lease))
    for (const { take } of this.#listeners) {
      const begun = owned.filter(({ lease }) => !lease.lost.aborted)
      const results = await Promise.allSettled(begun.map(take))
      const failed = begun.flatMap(({ lease }, at) => (results[at]?.status === 'rejected' && !lease.lost.aborted ? [lease] : []))
      const reason = results.find((result) => result.status === 'rejected')?.reason
      if (failed.length > 0) this.#log.error('shards not acquired', { shards: failed.length, error: reason })
      await Promise.all(failed.map((lease) => lease.release().catch(() => undefined)))
    }
  }

  /** Gives up a lease once nothing runs under it. Never rejects. */
  leave(owned: OwnedStore): Promise<void> {
    const known = this.#leaving.get(owned)
    if (known) return known
    this.#staying.delete(owned)
    const left = this.#leaveIdle(owned).finally(() => this.#leaving.delete(owned))
    this.#leaving.set(owned, left)
    return left
  }

  /** Gives up everything. Never rejects. */
  async leaveAll(): Promise<void> {
    await Promise.all([...this.staying().map((owned) => this.leave(owned)), ...this.#leaving.values()])
  }

  /** Releases all leases, whatever runs under them. Never rejects: a lease that cannot be released is taken over. */
  async release(): Promise<void> {
    await Promise.all([...this.#held.keys()].map((lease) => this.#release(lease)))
  }

  async #leaveIdle(owned: OwnedStore): Promise<void> {
    const { lease } = owned
    if (!this.#held.has(lease)) return
    try {
      await Promise.all([...this.#listeners].map(({ leave }) => leave?.(owned)))
    } catch (error) {
      this.#log.error('work of a shard that is given up cannot be ended', { lease: lease.name, error })
    }
    await this.#release(lease)
  }

  async #release(lease: Lease): Promise<void> {
    await lease.release().catch((error: unknown) => this.#log.warn('lease not released', { lease: lease.name, error }))
  }
}
