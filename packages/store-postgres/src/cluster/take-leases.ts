/** Takes leases that are free, that dead processes hold, or that an earlier process of the same node has left. */
import { type LeaseName, SHARDS, type ShardRange } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Tx } from '../connection/group-commit.ts'
import { TTL_MS } from './membership.ts'

/** Processes take leases one after the other, and decide under this lock which holders are dead. */
export const LOCK = 'SELECT pg_advisory_xact_lock(7355, hashtext(current_schema()))'
const CONFLICTS = `
  SELECT leases.epoch, leases.process, processes.node,
    coalesce(processes.beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond', false) AS "isAlive"
  FROM leases LEFT JOIN processes ON processes.id = leases.process
  WHERE name = $1 OR (shard_from <= $3 AND shard_to >= $2)`
/** In one order, as the commits that these locks wait for. */
export const END = 'DELETE FROM leases WHERE epoch IN (SELECT epoch FROM leases WHERE epoch = ANY ($1::bigint[]) ORDER BY epoch FOR UPDATE)'
const TAKE = `
  INSERT INTO leases (name, epoch, process, shard_from, shard_to) VALUES ($1, nextval('epochs'), $2, $3, $4) RETURNING epoch`
const SHARDS_TAKEN = `
  SELECT leases.epoch, leases.process, shard_from AS "from", shard_to AS "to", processes.node,
    coalesce(processes.beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond', false) AS "isAlive"
  FROM leases LEFT JOIN processes ON processes.id = leases.process WHERE shard_from IS NOT NULL`
const TAKE_SHARDS = `
  INSERT INTO leases (name, epoch, process, shard_from, shard_to)
  SELECT 'shards/' || shard || '-' || shard, nextval('epochs'), $1, shard, shard FROM unnest($2::int[]) AS shard
  RETURNING epoch, shard_from AS shard`

interface Conflict {
  readonly epoch: number
  readonly process: string
  readonly node: string | null
  readonly isAlive: boolean
}

export type Taken = { readonly epoch: number } | { readonly blockers: readonly Conflict[] }

export interface Taker {
  readonly db: Database
  readonly process: string
  /** The name of the node. */
  readonly node: string
  /** The channel of notices to other processes. */
  readonly channel: string
}

export interface WantedLease {
  readonly name: LeaseName
  readonly shards: ShardRange | null
  /** Takes it although an earlier process of the node has not answered. */
  readonly isForced: boolean
}

/** Takes a lease. `lose` is called for each earlier lease of this process that is in the way, in the transaction that ends it. */
export function takeLease(
  { db, process, node, channel }: Taker,
  { name, shards, isForced }: WantedLease,
  lose: (epoch: number) => void,
): Promise<Taken> {
  const [from, to] = shards ? [shards.from, shards.to] : [null, null]
  return db.writer.transaction(async (tx: Tx): Promise<Taken> => {
    await tx.all(LOCK)
    const conflicts = await tx.all<Conflict>(CONFLICTS, name, from, to)
    const blockers = conflicts.filter((one) => one.isAlive && one.process !== process && !(isForced && one.node === node))
    if (blockers.length > 0) {
      const own = blockers.filter((one) => one.node === node).map(({ epoch }) => epoch)
      if (own.length > 0) await tx.all('SELECT pg_notify($1, $2)', channel, JSON.stringify({ what: 'want', epochs: own }))
      return { blockers }
    }
    const epochs = conflicts.map(({ epoch }) => epoch)
    if (epochs.length > 0) await tx.all(END, epochs)
    // Writes that were requested under an earlier lease of this process fail from here on.
    for (const epoch of epochs) lose(epoch)
    const row = await tx.get<{ epoch: number }>(TAKE, name, process, from, to)
    return { epoch: row?.epoch ?? 0 }
  })
}

/** Takes at most `count` shards, each with a lease of its own. `holds` tells which leases this process knows that it holds. */
export function takeFreeShards(
  { db, process, node }: Taker,
  count: number,
  holds: (epoch: number) => boolean,
): Promise<readonly { readonly epoch: number; readonly shard: number }[]> {
  return db.writer.transaction(async (tx): Promise<readonly { epoch: number; shard: number }[]> => {
    await tx.all(LOCK)
    const taken = await tx.all<Conflict & ShardRange>(SHARDS_TAKEN)
    // A row of this process that it knows nothing of was taken in a transaction whose answer was lost.
    const isHeld = (one: Conflict): boolean => (one.process === process ? holds(one.epoch) : one.isAlive && one.node !== node)
    const blocked = new Set(taken.filter(isHeld).flatMap(({ from, to }) => range(from, to)))
    const shards = range(0, SHARDS - 1)
      .filter((shard) => !blocked.has(shard))
      .slice(0, count)
    const ended = taken.filter((one) => !isHeld(one) && shards.some((shard) => shard >= one.from && shard <= one.to))
    const epochs = ended.map(({ epoch }) => epoch)
    if (epochs.length > 0) await tx.all(END, epochs)
    return shards.length > 0 ? tx.all(TAKE_SHARDS, process, shards) : []
  })
}

const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at)
