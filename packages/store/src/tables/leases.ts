/**
 * The leases of one file. A lease is granted at once and taken over from its earlier holder, because the lock of the data directory
 * keeps two daemons apart already. A lease is held while its row exists.
 */
import { type Lease, type LeaseName, type LeaseStore, type ShardRange, shardsOf } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Fence, GroupCommit } from '../connection/group-commit.ts'

/** Ends the same lease and, for a range of shards, every lease with one of them. */
const END_EARLIER = 'DELETE FROM leases WHERE name = ?1 OR (shard_from <= ?3 AND shard_to >= ?2)'
const TAKE = 'INSERT INTO leases (name, shard_from, shard_to, taken_at) VALUES (?, ?, ?, ?)'
const HELD = 'SELECT 1 FROM leases WHERE epoch = ?'
const RELEASE = 'DELETE FROM leases WHERE epoch = ?'

export class Leases implements LeaseStore {
  readonly #db: Database
  readonly #writer: GroupCommit
  readonly #nowMs: () => number
  readonly #held = new Set<HeldLease>()

  constructor(db: Database, writer: GroupCommit, nowMs: () => number) {
    this.#db = db
    this.#writer = writer
    this.#nowMs = nowMs
  }

  async acquire(name: LeaseName, signal?: AbortSignal): Promise<Lease> {
    signal?.throwIfAborted()
    const shards = shardsOf(name)
    const [from, to] = shards ? [shards.from, shards.to] : [null, null]
    const epoch = await this.#writer.writeFences(() => {
      this.#db.run(END_EARLIER, name, from, to)
      return this.#db.insert(TAKE, name, from, to, this.#nowMs()) ?? 0
    })
    const lease = new HeldLease(this.#db, this.#writer, { name, epoch, shards }, () => this.#held.delete(lease))
    this.#held.add(lease)
    this.loseTaken()
    if (!signal?.aborted) return lease
    await lease.release()
    throw signal.reason
  }

  /** Returns a lease that this store granted as what its writes are checked by. Throws for any other. */
  fenceOf(lease: Lease): Fence {
    if (lease instanceof HeldLease && lease.isOf(this.#db)) return lease
    throw new Error(`the lease ${lease.name} was not granted by this store`)
  }

  /** Notices the leases that another holder has taken over. */
  loseTaken(): void {
    for (const lease of [...this.#held]) if (!this.#db.read(() => lease.isHeld())) lease.lose()
  }
}

class HeldLease implements Lease, Fence {
  readonly name: LeaseName
  readonly epoch: number
  readonly shards: ShardRange | null
  readonly #db: Database
  readonly #writer: GroupCommit
  readonly #lost = new AbortController()
  readonly #onLost: () => void

  constructor(db: Database, writer: GroupCommit, { name, epoch, shards }: Pick<Lease, 'name' | 'epoch' | 'shards'>, onLost: () => void) {
    this.name = name
    this.epoch = epoch
    this.shards = shards
    this.#db = db
    this.#writer = writer
    this.#onLost = onLost
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  isOf(db: Database): boolean {
    return this.#db === db
  }

  /** Reads the file, inside or outside of a transaction. */
  isHeld(): boolean {
    return this.#db.get(HELD, this.epoch) !== undefined
  }

  /** Reads the file. A lease is in doubt while the file cannot be read. */
  mayAct(): boolean {
    if (this.lost.aborted) return false
    try {
      if (this.#db.read(() => this.isHeld())) return true
    } catch {
      return false
    }
    this.lose()
    return false
  }

  lose(): void {
    this.#onLost()
    this.#lost.abort()
  }

  async release(): Promise<void> {
    if (this.lost.aborted) return
    const released = this.#writer.writeFences(() => this.#db.run(RELEASE, this.epoch))
    this.lose()
    await released
  }
}
