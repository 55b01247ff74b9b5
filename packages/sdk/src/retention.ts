/** What a store may forget, and what it says about it. */

/** Everything that ended before its moment may be dropped. Unfinished work and audit records never are. */
export interface Retention {
  /**
   * Messages and replies that are over, settled approvals, ended turns and ended runs are dropped whole; but never a message
   * whose id is still remembered, or whose batch has a message that waits, runs, or died later.
   */
  readonly endedBeforeMs: number
  /** Ids of messages that came before may come again. */
  readonly idsBeforeMs: number
  /** Idempotency keys of turns that ended before may come again. */
  readonly keysBeforeMs: number
  /** What was said in conversations before is dropped, and conversations that were last active before. */
  readonly saidBeforeMs: number
  /**
   * Bytes that everything together may take, the audit log not counted. Beyond it the oldest go first: contents of messages
   * that are done, then sent replies and ended turns, then what was said in conversations.
   */
  readonly bytesMax: number
  readonly nowMs: number
  /** Rows of each kind that one call drops at most. */
  readonly limit: number
}

/** Rows by their kind. */
export interface Forgotten {
  /** Messages of channels. */
  readonly messages: number
  /** Messages that lost only their content. */
  readonly contents: number
  readonly replies: number
  readonly approvals: number
  readonly turns: number
  readonly runs: number
  /** What was said in one turn of a conversation. */
  readonly said: number
  readonly conversations: number
}

export interface StoreUsage {
  /** Of everything that is kept, the audit log not counted. */
  readonly bytes: number
  /** Of the files, unused space and the log of recent writes included. */
  readonly fileBytes: number
  /** When an earlier release's data was upgraded; null: never. */
  readonly upgradedAtMs: number | null
  /** Copies that were made before upgrades. */
  readonly copies: readonly string[]
}
