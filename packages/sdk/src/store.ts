/**
 * The port of durable state. A method that writes resolves once its change is on stable storage, and rejects with
 * `unavailable` when it could not be kept (full disk, I/O error): then nothing of it is seen in this process; a crash before
 * the next write may bring it back, whole. Writes asked for at about the same time may share a commit. Times are milliseconds since 1970; JSON members hold plain data.
 */
import type { ApprovalStore } from './approval-store.ts'
import type { InboxStore, NewReply, OutboxStore } from './delivery-store.ts'
import type { ModelMessage } from './model.ts'
import type { Forgotten, Retention, StoreUsage } from './retention.ts'
import type { Role } from './route.ts'
import type { SopStore } from './sop-store.ts'

/** Durable keys and values of one owner. Keys sort by code unit. */
export interface KeyValue {
  get(key: string): Promise<unknown>
  set(key: string, value: unknown): Promise<void>
  delete(key: string): Promise<void>
  list(prefix: string, limit: number): Promise<{ readonly key: string; readonly value: unknown }[]>
}

export interface SessionRow {
  readonly id: string
  readonly name: string | null
  readonly createdAtMs: number
  readonly lastActiveAtMs: number
  readonly messageCount: number
}

export interface SessionStore {
  /** The newest `limit` messages, oldest first. An unknown session has none. */
  history(id: string, limit: number): Promise<ModelMessage[]>
  get(id: string): Promise<SessionRow | undefined>
  /** Those whose id starts with `prefix` and ends with `suffix`, most recently active first; `before` is the last one of the page before. */
  list(options: {
    readonly limit: number
    readonly before?: Pick<SessionRow, 'id' | 'lastActiveAtMs'>
    readonly prefix?: string
    readonly suffix?: string
  }): Promise<SessionRow[]>
  /** What was said, oldest first, turn by turn; `after` is the `upTo` of the last turn of the page before, 0 for the first page. */
  said(id: string, options: { readonly after: number; readonly limit: number }): Promise<SaidInTurn[]>
  rename(id: string, name: string | null): Promise<boolean>
  /**
   * Erases a conversation: the session with what was said, and the contents of its turns, messages, replies and approvals, also
   * where they are kept without a session. What waits for its turn is given up. Afterwards none of it can be found in the files
   * of the store. The audit log says that it was done, by whom, and nothing of what it was. Undefined if nothing is kept of it.
   * Rejects with `conflict` while a turn of it runs or waits. `memoriesOf`: the memories of this owner go with it.
   */
  erase(id: string, about: { readonly atMs: number; readonly by: string; readonly memoriesOf?: string }): Promise<Erased | undefined>
}

/** What one turn added to a session. */
export interface SaidInTurn {
  /** The session's message count with it. */
  readonly upTo: number
  readonly atMs: number
  readonly messages: readonly ModelMessage[]
}

/** How much was erased of a conversation. */
export interface Erased {
  /** Turns of the session with what was said in them. */
  readonly said: number
  readonly turns: number
  readonly messages: number
  readonly replies: number
  readonly approvals: number
  readonly memories: number
  /** Requests that are kept until other people's messages in them are done; erase again then. */
  readonly held: number
  /** False: another process kept the store's log from being emptied; it is emptied when the store is next closed. */
  readonly purged: boolean
  /** Copies made before upgrades, which still hold it until they are deleted. */
  readonly copies: readonly string[]
}

export type TurnStatus = 'queued' | 'running' | 'done' | 'failed' | 'aborted'

export interface TurnRow {
  readonly id: string
  readonly sessionId: string | null
  /** On whose behalf it ran; null: not known. */
  readonly owner: string | null
  readonly source: string
  readonly status: TurnStatus
  readonly input: string
  readonly response: string | null
  readonly model: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
  /** How often it has been started, without the starts after which it only went on waiting for a person. */
  readonly attempts: number
  /** How often it has been started in all; more than once means that a crash or a stop interrupted it. 0 for a turn that was not kept. */
  readonly starts: number
  readonly createdAtMs: number
  readonly endedAtMs: number | null
  /** What the caller wants back when the turn is taken up again after a restart; JSON. */
  readonly context: unknown
}

/** A turn that must survive a crash from now on. */
export interface QueuedTurn {
  readonly id: string
  readonly sessionId: string | null
  readonly owner?: string
  readonly source: string
  readonly input: string
  readonly context: unknown
  readonly createdAtMs: number
  readonly idempotency?: IdempotencyKey
}

/** The end of a turn: everything in it is committed together or not at all. */
export interface TurnEnd {
  readonly id: string
  readonly sessionId: string | null
  readonly owner?: string
  readonly source: string
  readonly status: 'done' | 'failed' | 'aborted'
  readonly input: string
  readonly response: string | null
  readonly model: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
  readonly attempts: number
  readonly createdAtMs: number
  readonly endedAtMs: number
  /** Appended to the session's history; empty for a failed turn. */
  readonly messages: readonly ModelMessage[]
  /** Marked done when the turn is, released when it failed. */
  readonly idempotency?: IdempotencyKey
  /** The message it answers: done from now on, its replies queued. */
  readonly delivery?: { readonly inbox: number; readonly replies: readonly NewReply[] }
}

export interface TurnStore {
  /** Keeps a turn before anybody is told it was accepted. Rejects with `conflict` if its id is known. */
  enqueue(turn: QueuedTurn): Promise<void>
  /**
   * Counts one more start of a queued turn, unless a question about one of its tool calls is open: then it only goes on waiting.
   * Resolves to the number of starts so far, this one included. Rejects with
   * `not_found` unless the turn is kept and unfinished, as `checkpoint` does.
   */
  start(id: string): Promise<number>
  /**
   * Takes back the attempt that a kept turn is in, while it waits for a person (`true`), and counts it again when it goes on:
   * an attempt that a crash interrupts meanwhile is not counted, and neither is a start while the question is still open. Of a turn that answers a message, the attempt at the
   * message likewise. Changes nothing for a turn that is not kept or has ended.
   */
  waits(id: string, isWaiting: boolean): Promise<void>
  /**
   * Keeps the messages a running turn has produced so far, tool results included, so that a turn cut by a crash goes on
   * where it stood. Replaces the previous checkpoint of this turn.
   */
  checkpoint(id: string, messages: readonly ModelMessage[]): Promise<void>
  /**
   * Ends a turn, whether or not it was ever queued, and drops its checkpoint. Settles the key the turn was queued with even
   * if `end` does not name it. Rejects with `conflict` for a turn that has ended, and appends nothing then. Resolves to the
   * numbers of the replies in the outbox, in their order.
   */
  finish(end: TurnEnd): Promise<readonly number[]>
  get(id: string): Promise<TurnRow | undefined>
  /** Turns a crash left behind, oldest first, each with its last checkpoint; without those that answer an inbox message. */
  unfinished(limit: number): Promise<(TurnRow & { readonly checkpoint: readonly ModelMessage[] })[]>
  /** Costs of all ended turns since a moment. */
  spentUsd(sinceMs: number): Promise<number>
}

export interface IdempotencyKey {
  /** Who and where: a hash of the credential, and the route. */
  readonly scope: string
  readonly key: string
}

/** What a claim found: `claimed` is ours now, `in_flight` runs elsewhere, `done` ended well within the window. */
export type Claim = 'claimed' | 'in_flight' | 'done'

export interface IdempotencyStore {
  /**
   * Takes a key atomically. A claim lives in memory until its turn is queued or ends, and a crash before that releases it.
   * At most `keysMax` keys are remembered, oldest dropped first, those in flight last. A key in flight does not expire,
   * since its turn still runs; one that is done expires `ttlMs` after its turn ended.
   */
  claim(key: IdempotencyKey, limits: { readonly ttlMs: number; readonly keysMax: number }): Claim | Promise<Claim>
  /** The turn that holds or used up a claimed key; undefined while no turn is known, and where a procedure took the request. */
  turnOf(key: IdempotencyKey): string | undefined | Promise<string | undefined>
  /** Gives a claimed key back; a key that is done stays, and one whose turn is queued is given back by that turn's end alone. */
  release(key: IdempotencyKey): void | Promise<void>
}

/** A paired device: one bearer token. */
export interface DeviceRow {
  readonly id: string
  readonly name: string
  readonly role: Role
  readonly createdAtMs: number
  readonly lastSeenAtMs: number | null
  readonly lastAddress: string | null
  /** Null: never. */
  readonly expiresAtMs: number | null
  /** The paired device that registered the passkey this one was issued for; null: it was paired itself. */
  readonly issuedBy: string | null
}

/** A device to be added, with the SHA-256 (hex) of its token. */
export type NewDevice = Omit<DeviceRow, 'lastSeenAtMs' | 'lastAddress' | 'issuedBy'> & {
  readonly tokenHash: string
  /** Default: null. */
  readonly issuedBy?: string | null
}

export interface DeviceStore {
  /** Adds a device; those that have expired go. Throws `conflict` for an id or a token that is kept already. */
  add(device: NewDevice): Promise<void>
  /** The device whose token has this SHA-256 (hex); sees what other processes wrote. Cheap enough for every request. */
  findByTokenHash(tokenHash: string): DeviceRow | undefined | Promise<DeviceRow | undefined>
  list(): Promise<DeviceRow[]>
  /**
   * Removes a device, and the devices its passkeys were good for; its passkeys are good for nothing any more. With
   * `keepPasskeys` it removes the device alone. False if there is no such device.
   */
  revoke(id: string, options?: { readonly keepPasskeys?: boolean }): Promise<boolean>
  /** Those of the devices that were revoked together with their passkeys. */
  revokedAmong(ids: readonly string[]): Promise<readonly string[]>
  /** Replaces a device's token; the old one is refused from then on. */
  rotate(id: string, tokenHash: string): Promise<boolean>
  touch(seen: readonly { readonly id: string; readonly atMs: number; readonly address: string }[]): Promise<void>
  /** Changes whenever any process has written to the store; for noticing revocations. */
  version(): number | Promise<number>
  /** Keeps a one-time code by its SHA-256; at most `pendingMax` live ones, oldest dropped first. */
  addCode(code: { readonly hash: string; readonly role: Role; readonly expiresAtMs: number }, pendingMax: number): Promise<void>
  /**
   * Uses a code up and adds the device, with the role of the code, in one commit. Resolves to that role, or to undefined if the
   * code is unknown, used or expired.
   */
  redeemCode(codeHash: string, device: Omit<NewDevice, 'role'>): Promise<Role | undefined>
  /** Drops every pending code, after too many wrong ones. */
  dropCodes(): Promise<number>
}

/** Owns memories that every client may read and only an operator, or a daemon with `[memory] shared = true`, may change. */
export const SHARED_MEMORIES = '*'

/** Owns memories written before memories had owners: every client may read them until an operator assigns them. */
export const UNOWNED_MEMORIES = ''

export interface MemoryEntry {
  /** As in `ToolContext.caller`, or one of the two names above. */
  readonly owner: string
  readonly key: string
  readonly content: string
  readonly category: string
  readonly updatedAtMs: number
}

/** What the agent remembers across sessions, found again by words. Each entry belongs to one owner; keys of two owners never meet. */
export interface Memories {
  /** Adds an entry, or replaces the one of the same owner and key. */
  put(entry: Omit<MemoryEntry, 'updatedAtMs'> & { readonly atMs: number }): Promise<void>
  /**
   * What `reader` may read: its own entries, the shared ones and the unowned ones, of which an own entry of the same key
   * hides the others. Best match first; an empty query lists the newest. Any text is a valid query.
   */
  search(reader: string, query: string, limit: number): Promise<MemoryEntry[]>
  get(owner: string, key: string): Promise<MemoryEntry | undefined>
  delete(owner: string, key: string): Promise<boolean>
}

/** Memories with what only operators may do; no tool is given this. */
export interface MemoryStore extends Memories {
  /** Every entry, or those of one owner, sorted by owner and key; `after` is the last entry of the page before. */
  list(options: {
    readonly limit: number
    readonly owner?: string
    readonly after?: Pick<MemoryEntry, 'owner' | 'key'>
  }): Promise<MemoryEntry[]>
  /**
   * Gives entries of one owner to another; `key`: only this one. An entry whose key the new owner uses already stays where it
   * is. Resolves to how many were given.
   */
  assign(change: { readonly from: string; readonly to: string; readonly key?: string }): Promise<number>
  /** How many entries each owner has, sorted by owner. */
  owners(): Promise<{ readonly owner: string; readonly count: number }[]>
}

export interface StoreProblem {
  readonly detail: string
}

/** What the store noticed of its disk and its file. */
export interface StoreHealth {
  /** When the last commit was, as `Clock.monotonicMs()` counts; null before the first. */
  readonly lastCommitMs: number | null
  /** Why nothing can be written, or what is wrong with the file, in the database's own words; null: nothing was noticed. */
  readonly fault: string | null
}

export interface Store {
  readonly sessions: SessionStore
  readonly turns: TurnStore
  readonly idempotency: IdempotencyStore
  readonly devices: DeviceStore
  readonly memory: MemoryStore
  readonly inbox: InboxStore
  readonly outbox: OutboxStore
  readonly approvals: ApprovalStore
  readonly sops: SopStore
  /** Drops what may be forgotten, in small commits, and gives the space back; resolves to how many rows of each kind. */
  prune(retention: Retention): Promise<Forgotten>
  /** What `prune` would drop for its age, if `limit` allowed everything. Reads all of it: for `doctor`. */
  prunable(retention: Retention): Promise<Forgotten>
  usage(): Promise<StoreUsage>
  /** Changes whenever another process has written; cheap enough for every second. */
  foreignVersion(): number | Promise<number>
  /** The durable keys of one owner; owners never see each other's. */
  keyValue(owner: string): KeyValue
  /** Writes waiting for their commit. */
  pending(): number
  /** From memory: nothing is read. */
  health(): StoreHealth
  /** Reads the whole file and checks it; empty when all is well. For `doctor`. */
  check(): Promise<readonly StoreProblem[]>
  /** Waits for what was asked for, then closes. Idempotent. */
  close(): Promise<void>
}
