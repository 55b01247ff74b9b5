/**
 * The port of ownership (docs/contract.md#ownership). A lease says which process recovers, runs and ends the work of a shard, listens
 * for an account of a channel, or does the work of a leader. The holder of a lease uses the store through `Store.under(lease)`.
 */
import { AppError } from './errors.ts'

/** The number of shards. All stored work is divided among the shards 0 to 255; the number never changes. */
export const SHARDS = 256

/** The shards `from` to `to`, both included. */
export interface ShardRange {
  readonly from: number
  readonly to: number
}

/** All shards, which a process owns that shares its store with no other. */
export const ALL_SHARDS: ShardRange = { from: 0, to: SHARDS - 1 }

/** `channel/<channel>/<account>` is the lease of a long connection. `session/<id>` is the lease of a turn that a client waits for. */
export type LeaseName = `shards/${number}-${number}` | `channel/${string}/${string}` | 'leader/cron' | 'leader/prune' | `session/${string}`

export const shardsLease = ({ from, to }: ShardRange): LeaseName => `shards/${from}-${to}`

export const channelLease = (channel: string, account: string): LeaseName =>
  `channel/${encodeURIComponent(channel.toWellFormed())}/${encodeURIComponent(account.toWellFormed())}`

/** Returns the shards that a lease covers; null for any other lease. Throws a RangeError for a range outside 0 to 255. */
export function shardsOf(name: LeaseName): ShardRange | null {
  if (!name.startsWith('shards/')) return null
  const [, from, to] = (/^shards\/(\d{1,3})-(\d{1,3})$/.exec(name) ?? []).map(Number)
  if (from === undefined || to === undefined || from > to || to >= SHARDS) throw new RangeError(`${name} is not a range of shards`)
  return { from, to }
}

export interface Lease {
  readonly name: LeaseName
  /** A later holder of the same lease, or of one of its shards, has a higher epoch. Epochs are never used twice. */
  readonly epoch: number
  /** The shards that the lease covers; null for a lease without shards. */
  readonly shards: ShardRange | null
  /** Aborts when this process learns that it no longer holds the lease, and on `release`. */
  readonly lost: AbortSignal
  /** Returns false when the lease is lost or in doubt. Ask, or call `checkHeld`, before each effect outside the store, such as a send. */
  mayAct(): boolean
  /** Gives the lease up after all writes that were requested under it. Idempotent. */
  release(): Promise<void>
}

export interface LeaseStore {
  /**
   * Resolves when this process holds the lease. An earlier holder of the same lease, or of one of its shards, can then write
   * nothing more under its lease. Rejects with the reason of `signal` when that aborts first, and with a RangeError for a range
   * outside 0 to 255.
   */
  acquire(name: LeaseName, signal?: AbortSignal): Promise<Lease>
}

/** The rejection of a write under a lease that another process has taken over or that was released. Nothing of it was stored. */
class LeaseLost extends AppError {}

/** Creates the rejection of a write under this lease. For implementations of `Store`. */
export const leaseLost = (name: LeaseName): AppError =>
  new LeaseLost('unavailable', `This process no longer holds the lease ${name}. Nothing was written.`)

/**
 * Throws unless this process may act under the lease: an error of `isLeaseLost` once it is lost, so that the next owner continues, and
 * another `unavailable` while that cannot be read from the store, so that this process tries again.
 */
export function checkHeld(lease: Pick<Lease, 'name' | 'lost' | 'mayAct'>): void {
  if (lease.mayAct()) return
  if (lease.lost.aborted) throw leaseLost(lease.name)
  const sentence = `The store cannot tell now whether this process still holds the lease ${lease.name}. Nothing was done.`
  throw new AppError('unavailable', sentence, { isPassing: true })
}

export const isLeaseLost = (error: unknown): boolean => error instanceof LeaseLost
