/**
 * The port of ownership (docs/contract.md#ownership). A lease says which process recovers, runs and ends the work of a shard, listens
 * for an account of a channel, or does the work of a leader. The holder of a lease uses the store through `Store.under(lease)`.
 */
import { AppError } from './errors.ts'
import type { NewReply } from './reply.ts'
import { channelOwner, escapedParts, parseAgentKey, parseChatSession } from './session-key.ts'

/** The number of shards. All stored work is divided among the shards 0 to 255; the number never changes. */
export const SHARDS = 256

/** The shards `from` to `to`, both included. */
export interface ShardRange {
  readonly from: number
  readonly to: number
}

/** All shards: what a process owns that has the store to itself. */
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
  /** Returns false when the lease is lost or in doubt. Ask before each effect outside the store, such as sending or running a tool call. */
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

export const isLeaseLost = (error: unknown): boolean => error instanceof LeaseLost

/** Returns the shard of a text, 0 to 255: the 32-bit FNV-1a hash of its UTF-8 bytes, folded to 8 bits by two exclusive ors. */
export function shardOf(key: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(key)) hash = Math.imul(hash ^ byte, 0x01000193)
  hash ^= hash >>> 16
  return (hash ^ (hash >>> 8)) & (SHARDS - 1)
}

/** Returns the shard of a conversation: of the messages from it and the replies to it. */
export const shardOfConversation = ({ channel, account, to }: Pick<NewReply, 'channel' | 'account' | 'to'>): number =>
  shardOf(`${channelOwner(channel)}/${escapedParts([account, to.to])}`)

/** The beginning of the key of the session that the steps of a procedure run share: `sop:<run>`. */
const RUN_SESSION = 'sop:'

/**
 * Returns the shard of a session. A chat session has the shard of its conversation, whatever its thread, sender and agent. The session
 * of a procedure run has the shard of the run's id.
 */
export function shardOfSession(session: string): number {
  const chat = parseChatSession(session)
  if (chat) return shardOfConversation({ ...chat, to: { to: chat.conversation } })
  const { key } = parseAgentKey(session)
  return shardOf(key.startsWith(RUN_SESSION) ? key.slice(RUN_SESSION.length) : session)
}

/** Returns the shard of a turn: that of its session, or of its id when it has none. */
export const shardOfTurn = (session: string | null, id: string): number => (session === null ? shardOf(id) : shardOfSession(session))
