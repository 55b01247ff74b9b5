/**
 * The port of durable state (docs/contract.md#storage). A method that writes resolves when its change is on stable storage, and
 * rejects with `unavailable` when the change could not be written (full disk, I/O error). This process then sees nothing of the
 * change, although a crash before the next write may bring it back as a whole. Simultaneous writes may share a commit. Times are
 * milliseconds since 1970; JSON members hold plain data.
 */

import type { NewReply } from '../channel/reply.ts'
import type { FinishReason, Usage } from '../observe/events.ts'
import type { ModelMessage } from '../tool/model.ts'
import type { Lease, LeaseStore, ShardRange } from '../values/lease.ts'
import type { Role } from '../values/route.ts'
import type { AdmissionStore, OwnedAdmissionStore } from './admission-store.ts'
import type { ApprovalStore, OwnedApprovalStore } from './approval-store.ts'
import type { ClusterStore } from './cluster-store.ts'
import type { Counters } from './counters.ts'
import type { InboxStore, OutboxStore, OwnedInboxStore, OwnedOutboxStore } from './delivery-store.ts'
import type { IdempotencyKey, IdempotencyStore } from './idempotency.ts'
import type { DeletedRows, Retention, StoreUsage } from './retention.ts'
import type { RowSurvey } from './signed-rows.ts'
import type { OwnedSopStore, SopStore } from './sop-store.ts'
import type { TurnError, TurnRow, TurnStatus, TurnStep } from './turn-row.ts'

/** The durable key-value pairs of one owner. Keys sort by code unit. */
export interface KeyValue {
  get(key: string): Promise<unknown>
  set(key: string, value: unknown): Promise<void>
  delete(key: string): Promise<void>
  /**
   * Replaces the value `before` with `after`, or resolves to false and changes nothing when the key has another value. Absent is
   * `undefined`, on both sides. Values are equal when their JSON is, in any order of members. Use it for each change that depends on
   * the value that was read.
   */
  swap(key: string, before: unknown, after: unknown): Promise<boolean>
  /** Writes and deletes keys in one commit: after a crash all changes are there, or none. `undefined` deletes a key. */
  setAll(changes: ReadonlyMap<string, unknown>): Promise<void>
  list(prefix: string, limit: number): Promise<{ readonly key: string; readonly value: unknown }[]>
}

/** Returns the beginning of keys of a session. `SessionStore.erase` deletes all keys that begin so, of every owner. */
export const sessionKeys = (session: string): string => `session:${session}\0`

export interface SessionRow {
  readonly id: string
  readonly name: string | null
  readonly createdAtMs: number
  readonly lastActiveAtMs: number
  readonly messageCount: number
}

/** The text that a model gets instead of the oldest messages of a session. The messages themselves stay stored. */
export interface SessionSummary {
  readonly text: string
  /** The number of messages that it covers, counted from the first message of the session. */
  readonly upTo: number
  /** The time of the last message that it covers. */
  readonly upToMs: number
  /** The model that wrote it. */
  readonly model: string
  readonly atMs: number
  /** Whether a covered message has text from outside, which is never an instruction. */
  readonly untrusted: boolean
}

/** A session as the next turn continues it. */
export interface Conversation {
  /** The number of messages that the session has had. */
  readonly upTo: number
  readonly summary: SessionSummary | undefined
  /** The newest messages that the summary does not cover, oldest first. */
  readonly messages: readonly ModelMessage[]
}

export interface SessionStore {
  /** Resolves to the newest `limit` messages, oldest first; empty for an unknown session. */
  history(id: string, limit: number): Promise<ModelMessage[]>
  /** Resolves to the summary and at most `limit` messages; to an empty conversation for an unknown session. */
  conversation(id: string, limit: number): Promise<Conversation>
  summary(id: string): Promise<SessionSummary | undefined>
  /**
   * Replaces the summary of a session. `seen` is the conversation that it was made of. Resolves to false and changes nothing when the
   * session has other messages or another summary meanwhile, such as after it was erased.
   */
  summarize(id: string, seen: Pick<Conversation, 'upTo' | 'summary'>, summary: SessionSummary): Promise<boolean>
  get(id: string): Promise<SessionRow | undefined>
  /**
   * Lists sessions whose key, the id without its agent, starts with `prefix` and ends with `suffix`, most recently active first.
   * `before` is the last row of the previous page.
   */
  list(options: {
    readonly limit: number
    readonly before?: Pick<SessionRow, 'id' | 'lastActiveAtMs'>
    readonly prefix?: string
    readonly suffix?: string
  }): Promise<SessionRow[]>
  /**
   * Lists the messages by turn, oldest first. `after` is the `upTo` of the last turn of the previous page, 0 for the first page. With `upTo` no turn
   * is listed whose own is larger.
   */
  messagesByTurn(id: string, options: { readonly after: number; readonly limit: number; readonly upTo?: number }): Promise<TurnMessages[]>
  rename(id: string, name: string | null): Promise<boolean>
  /**
   * Erases a conversation: its messages and the contents of its turns, inbox messages, replies and approvals, its `sessionKeys`, and
   * with `memoriesOf` the memories of this owner. Waiting messages become done. Afterwards no content remains in the files of the store. The audit
   * log records when and by whom, but no content. Resolves to undefined when nothing is stored. Rejects with `conflict` while a
   * turn of the conversation runs or waits.
   */
  erase(id: string, about: { readonly atMs: number; readonly by: string; readonly memoriesOf?: string }): Promise<Erased | undefined>
}

/** The messages that one turn added to a session. */
export interface TurnMessages {
  /** The message count of the session after the turn. */
  readonly upTo: number
  readonly atMs: number
  readonly messages: readonly ModelMessage[]
}

/** The amount of erased data. */
export interface Erased {
  /** The number of turns whose messages were erased. */
  readonly historyTurns: number
  readonly turns: number
  readonly messages: number
  readonly replies: number
  readonly approvals: number
  readonly memories: number
  /** Requests that also hold unfinished messages of other senders; erase again when these are done. */
  readonly held: number
  /** False when another process prevented emptying the write-ahead log, which then happens when the store is closed. */
  readonly purged: boolean
  /** The paths of copies from before upgrades, which still hold the data. */
  readonly copies: readonly string[]
}

export type { TurnError, TurnRow, TurnStatus, TurnStep } from './turn-row.ts'

/** A turn to store before it runs, so that it survives a crash. */
export interface QueuedTurn {
  readonly id: string
  readonly agent: string
  readonly sessionId: string | null
  readonly owner?: string
  readonly source: string
  readonly input: string
  readonly context: unknown
  readonly createdAtMs: number
  readonly idempotency?: IdempotencyKey
  /** True: this process runs the turn, and in a cluster no other does while this process lives. Else the owner of its shard runs it. */
  readonly isDirect?: boolean
}

/** The end of a turn, committed as a whole. */
export interface TurnEnd {
  readonly id: string
  readonly agent: string
  readonly sessionId: string | null
  readonly owner?: string
  readonly source: string
  readonly status: 'done' | 'failed' | 'aborted'
  readonly input: string
  readonly response: string | null
  readonly model: string | null
  /** How the answer ended; `stop` when absent. */
  readonly finishReason?: FinishReason
  readonly error: TurnError | null
  /** The usage of the attempt that ended the turn; see `addUsage`. */
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
  readonly attempts: number
  readonly createdAtMs: number
  readonly endedAtMs: number
  /** The messages to append to the session; empty for a failed turn. */
  readonly messages: readonly ModelMessage[]
  /** Absent for none. */
  readonly steps?: readonly TurnStep[]
  /** The idempotency key, which becomes done with the turn or is released when the turn failed. */
  readonly idempotency?: IdempotencyKey
  /** The inbox message that the turn answers, which becomes done, and its replies. */
  readonly delivery?: { readonly inbox: number; readonly replies: readonly NewReply[] }
}

export interface CostSpan {
  readonly sinceMs: number
  readonly untilMs: number
  readonly periodMs: number
  readonly offsetMs: number
}

export interface PeriodCost {
  /** The begin of the period. */
  readonly atMs: number
  readonly agent: string
  /** Null for turns without an answer and for deleted turns. */
  readonly model: string | null
  readonly costUsd: number
  readonly turns: number
  readonly inputTokens: number
  readonly outputTokens: number
}

export interface TurnFilter {
  readonly limit: number
  readonly before?: { readonly endedAtMs: number; readonly id: string }
  /** Only turns that ended at this time or later. */
  readonly sinceMs?: number
  readonly status?: TurnStatus
  readonly agent?: string
  /** Only turns of this client. */
  readonly owner?: string
  readonly sessionId?: string
  /** Only turns that answer a message of this sender of a channel. Give it with a session and a time, which bound what is read. */
  readonly sender?: string
}

export type ListedTurn = Omit<TurnRow, 'input' | 'response' | 'context' | 'starts' | 'endedAtMs' | 'inbox' | 'steps'> & {
  readonly endedAtMs: number
  /** The sender of the message; null where no message began the turn, or it was deleted. */
  readonly sender: string | null
}

export interface TurnStore {
  /** Stores a turn before its acceptance is reported. Rejects with `conflict` when the id is known. */
  enqueue(turn: QueuedTurn): Promise<void>
  /**
   * Counts a start of a stored turn, except while a question about one of its tool calls is open. Resolves to the number of counted
   * starts. Rejects with `not_found` unless the turn is stored and unfinished, as `checkpoint` does.
   */
  start(id: string): Promise<number>
  /**
   * Uncounts the current attempt of a stored turn while it waits for a person (`true`), and counts it again when it continues. An
   * attempt that a crash interrupts meanwhile does not count, nor does a start while the question is open. The same applies to the
   * attempt at the inbox message of the turn. Changes nothing for a turn that is not stored or has ended.
   */
  waits(id: string, isWaiting: boolean): Promise<void>
  /**
   * Stores the messages that a running turn has produced, with tool results, so that the turn resumes there after a crash. Replaces
   * the previous checkpoint of the turn.
   */
  checkpoint(id: string, messages: readonly ModelMessage[]): Promise<void>
  /**
   * Adds what an attempt has used that did not end its stored turn. The end of the turn adds its own usage. Changes nothing for a turn
   * that is not stored or has ended.
   */
  addUsage(id: string, used: Usage & Pick<TurnEnd, 'model'>): Promise<void>
  /**
   * Ends a turn, stored or not, and deletes its checkpoint. Completes or releases the idempotency key that the turn was stored with,
   * even when `end` does not name it. Rejects with `conflict` for a turn that has ended. Resolves to the numbers of the replies in
   * the outbox, in order.
   */
  finish(end: TurnEnd): Promise<readonly number[]>
  get(id: string): Promise<TurnRow | undefined>
  /** Resolves to the cost of all turns that ended since a time. */
  spentUsd(sinceMs: number): Promise<number>
  /**
   * Adds up the turns that ended in a span of time, for each period, agent and model, the oldest period first. A period begins at a
   * multiple of `periodMs` after `offsetMs`; both are multiples of 15 minutes. Of deleted turns only the cost is
   * known.
   */
  costs(span: CostSpan): Promise<readonly PeriodCost[]>
  /** Lists ended turns, the latest end first, without the texts of their messages. `before` is the last row of the previous page. */
  list(filter: TurnFilter): Promise<readonly ListedTurn[]>
  /**
   * Asks the process that runs a stored turn to abort it. The request ends with the turn. With `owner`, only a turn of this client
   * counts. Resolves to false when no such turn is stored and unfinished.
   */
  requestAbort(id: string, owner?: string): Promise<boolean>
  /**
   * Lists the sessions with a turn or an inbox message that has not ended, also while it waits for a person. A turn without a session
   * counts as one of the session `<owner>/` of its agent.
   */
  openSessions(): Promise<readonly string[]>
}

/** The turns as the holder of a lease uses them. The shard of a turn is `shardOfTurn`. */
export interface OwnedTurnStore extends TurnStore {
  /**
   * Lists turns in the shards of the lease that an earlier holder left unfinished, oldest first, with their checkpoints, except
   * turns that answer an inbox message.
   */
  unfinished(limit: number): Promise<(TurnRow & { readonly checkpoint: readonly ModelMessage[] })[]>
  /** Lists the ids of unfinished turns in the shards of the lease that a caller asked to abort. */
  abortsRequested(): Promise<readonly string[]>
}

/** A paired device: one bearer token. */
export interface DeviceRow {
  readonly id: string
  readonly name: string
  readonly role: Role
  readonly createdAtMs: number
  readonly lastSeenAtMs: number | null
  readonly lastAddress: string | null
  /** The expiry; null for never. */
  readonly expiresAtMs: number | null
  /** The device that registered the passkey of this device; null for a device that was paired itself. */
  readonly issuedBy: string | null
}

/** A device to add, with the SHA-256 of its token in hex. */
export type NewDevice = Omit<DeviceRow, 'lastSeenAtMs' | 'lastAddress' | 'issuedBy'> & {
  readonly tokenHash: string
  /** Null unless given. */
  readonly issuedBy?: string | null
}

export interface DeviceStore {
  /** Adds a device and deletes expired ones. Throws `conflict` for a known id or token. */
  add(device: NewDevice): Promise<void>
  /** Finds the device by the SHA-256 of its token in hex, including changes of other processes. Cheap enough for every request. */
  findByTokenHash(tokenHash: string): DeviceRow | undefined | Promise<DeviceRow | undefined>
  find(id: string): Promise<DeviceRow | undefined>
  list(): Promise<DeviceRow[]>
  /**
   * Removes a device, its passkeys, and the devices that were issued for them. With `keepPasskeys` it removes only the device.
   * Resolves to false for an unknown device.
   */
  revoke(id: string, options?: { readonly keepPasskeys?: boolean }): Promise<boolean>
  /** Resolves to the devices of `ids` that were revoked together with their passkeys. */
  revokedAmong(ids: readonly string[]): Promise<readonly string[]>
  /** Replaces the token of a device, and its expiry if one is given; the old token is refused from now on. */
  rotate(id: string, tokenHash: string, expiresAtMs?: number): Promise<boolean>
  touch(seen: readonly { readonly id: string; readonly atMs: number; readonly address: string }[]): Promise<void>
  /** A number that changes, at least, when any process removes a device or replaces a token. */
  version(): number | Promise<number>
  /** Stores the SHA-256 of a one-time code; at most `pendingMax` valid ones, the oldest dropped first. */
  addCode(code: { readonly hash: string; readonly role: Role; readonly expiresAtMs: number }, pendingMax: number): Promise<void>
  /**
   * Redeems a code and adds the device with the role of the code in one commit. Resolves to the role, or to undefined when the code
   * is unknown, used or expired.
   */
  redeemCode(codeHash: string, device: Omit<NewDevice, 'role'>): Promise<Role | undefined>
  /** Deletes every pending code, after too many wrong guesses. Resolves to their number. */
  dropCodes(): Promise<number>
}

/** The owner of memories that every client may read, and that change only by an operator or with `[memory] shared = true`. */
export const SHARED_MEMORIES = '*'

/** The owner of memories of the first release: every client may read them until an operator assigns them. */
export const UNOWNED_MEMORIES = ''

export interface MemoryEntry {
  /** The owner, as in `ToolContext.caller`, or one of the two constants above. */
  readonly owner: string
  readonly key: string
  readonly content: string
  readonly category: string
  /** Whether text of others may have led to it: its writer had read some. True for the memories of releases that did not record it. */
  readonly untrusted: boolean
  readonly updatedAtMs: number
}

/** The memories of the agent, searched by words. Each entry belongs to one owner, and keys of different owners are independent. */
export interface Memories {
  /** Adds an entry or replaces the one with the same owner and key. */
  put(entry: Omit<MemoryEntry, 'updatedAtMs'> & { readonly atMs: number }): Promise<void>
  /**
   * Searches the entries that `reader` may read: its own, shared and unowned ones. An own entry hides others with the same key. The
   * best match is first; an empty query lists the newest entries. Any text is a valid query.
   */
  search(reader: string, query: string, limit: number): Promise<MemoryEntry[]>
  /**
   * Finds the entries, among the ones that `reader` may read, that share words or parts of words with a text, in every script. The entries that share
   * most are first. A text without words finds nothing.
   */
  similar(reader: string, text: string, limit: number): Promise<MemoryEntry[]>
  get(owner: string, key: string): Promise<MemoryEntry | undefined>
  delete(owner: string, key: string): Promise<boolean>
  /** Resolves to the number of entries of one owner. */
  count(owner: string): Promise<number>
}

/** Memories with the methods for operators. Tools do not get this interface. */
export interface MemoryStore extends Memories {
  /** Lists all entries or the entries of one owner, sorted by owner and key. `after` is the last entry of the previous page. */
  list(options: {
    readonly limit: number
    readonly owner?: string
    readonly after?: Pick<MemoryEntry, 'owner' | 'key'>
  }): Promise<MemoryEntry[]>
  /**
   * Moves the entries of one owner, or only the one with `key`, to another owner. An entry whose key the new owner already uses
   * stays. Resolves to the number of moved entries.
   */
  assign(change: { readonly from: string; readonly to: string; readonly key?: string }): Promise<number>
  /** Counts the entries of each owner, sorted by owner. `after` is the last owner of the previous page. */
  owners(options: { readonly limit: number; readonly after?: string }): Promise<{ readonly owner: string; readonly count: number }[]>
}

/** The finding of a check of the database's server, and how to repair it; `fix` is null when nothing is wrong. */
export interface ServerCheck {
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  readonly fix: string | null
}

export interface StoreProblem {
  readonly detail: string
}

/** The state of the store's disk and file as noticed. */
export interface StoreHealth {
  /** The time of the last commit by `Clock.monotonicMs()`; null before the first. */
  readonly lastCommitMs: number | null
  /** Why nothing can be written, or the damage of the file, in the words of the database; null when nothing was noticed. */
  readonly fault: string | null
}

/** A notice that other processes may have written. */
export interface StoreChange {
  /** The shards they wrote to; null when these are not known. */
  readonly shards: ShardRange | null
  /** The shards among `shards` that they wrote to; all of them unless given. */
  readonly among?: ReadonlySet<number>
  /** Present when they only stored messages that arrived: the numbers of these. */
  readonly messages?: readonly number[]
}

/** The groups of the store with the work that processes divide among themselves. */
export interface WorkStore {
  readonly sessions: SessionStore
  readonly turns: TurnStore
  readonly idempotency: IdempotencyStore
  readonly inbox: InboxStore
  readonly outbox: OutboxStore
  readonly approvals: ApprovalStore
  readonly sops: SopStore
  readonly admissions: AdmissionStore
  /** Deletes old data in small commits and frees the space. Resolves to the number of rows of each kind. */
  prune(retention: Retention): Promise<DeletedRows>
  /** The durable keys of one owner; owners never see each other's. */
  keyValue(owner: string): KeyValue
}

/**
 * The store as the holder of a lease uses it. Once the lease is lost, each write is rejected (`isLeaseLost`) and changes nothing.
 * Only this interface has the methods that recover the work of an earlier holder; with a lease without shards they find nothing.
 */
export interface OwnedStore extends WorkStore {
  readonly lease: Lease
  readonly turns: OwnedTurnStore
  readonly inbox: OwnedInboxStore
  readonly outbox: OwnedOutboxStore
  readonly approvals: OwnedApprovalStore
  readonly sops: OwnedSopStore
  readonly admissions: OwnedAdmissionStore
}

export interface Store extends WorkStore {
  readonly devices: DeviceStore
  readonly memory: MemoryStore
  readonly counters: Counters
  readonly leases: LeaseStore
  /** Absent unless the store was opened for a cluster. */
  readonly cluster?: ClusterStore
  /** Returns the store as the holder of a lease uses it. `lease` is one that this store granted. Cheap: the same lease gets the same object. */
  under(lease: Lease): OwnedStore
  /**
   * Calls `listener` soon after other processes have written, within about a second, until the returned function is called. Several
   * changes may share a notice. The listener must not throw.
   */
  onChange(listener: (change: StoreChange) => void): () => void
  /** Resolves to the rows that `prune` would delete for their age without a limit. Reads all rows, for `sluice doctor`. */
  prunable(retention: Retention): Promise<DeletedRows>
  usage(): Promise<StoreUsage>
  /** Returns the number of writes that wait for their commit. */
  pending(): number
  /** Returns the health known in memory, without a read. */
  health(): StoreHealth
  /** Writes as an arriving message does, and keeps nothing. Rejects with `unavailable` while the store cannot keep messages. */
  probe(): Promise<void>
  /** Reads the whole file and checks it; empty when all is well. For `doctor`. */
  check(): Promise<readonly StoreProblem[]>
  /** Finds rows of configuration, devices and grants without a right HMAC; absent for the embedded database. For `doctor`. */
  unverifiedRows?(): Promise<RowSurvey>
  /** Checks the server of the database; absent for the embedded database. For `doctor`. */
  checkServer?(): Promise<readonly ServerCheck[]>
  /** Waits for all requested writes, then closes. Idempotent. */
  close(): Promise<void>
}
