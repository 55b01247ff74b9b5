/** The retention policy of a store and the results of pruning. */

/** Data that ended before these times may be deleted. Unfinished work and audit records are never deleted. */
export interface Retention {
  /**
   * Ended messages and replies, acknowledged approvals, ended turns and ended runs before this time are deleted; but never a
   * message whose id is still remembered, or whose request has another message that is unfinished or ended later.
   */
  readonly endedBeforeMs: number
  /** Ids of messages that were received before this time are forgotten. */
  readonly idsBeforeMs: number
  /** Idempotency keys of turns that ended before this time are forgotten. */
  readonly keysBeforeMs: number
  /** Messages of conversations before this time are deleted, and conversations that were last active before it. */
  readonly historyBeforeMs: number
  /**
   * The largest number of bytes of all data, without the audit log. Beyond it the oldest data is deleted first: contents of
   * ended messages, then sent replies and ended turns, then messages of conversations.
   */
  readonly bytesMax: number
  readonly nowMs: number
  /** The largest number of rows of each kind that one call deletes. */
  readonly limit: number
}

/** The number of deleted rows by kind. */
export interface DeletedRows {
  /** Deleted messages of channels. */
  readonly messages: number
  /** Messages whose content was deleted. */
  readonly contents: number
  readonly replies: number
  readonly approvals: number
  readonly turns: number
  readonly runs: number
  /** Messages of conversations, counted by turn. */
  readonly historyTurns: number
  readonly conversations: number
}

export interface StoreUsage {
  /** The bytes of all data, without the audit log. */
  readonly bytes: number
  /** The bytes of the files, with unused space and the write-ahead log. */
  readonly fileBytes: number
  /** The time at which data of an earlier release was upgraded; null when it never was. */
  readonly upgradedAtMs: number | null
  /** The paths of the copies that were made before upgrades. */
  readonly copies: readonly string[]
}
