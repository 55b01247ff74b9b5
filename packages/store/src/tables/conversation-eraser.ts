/** Erases a conversation from all tables, and then the remains of deleted rows from the files. */
import { AppError, actionRecord, type Erased, type SessionStore, sessionKeys, sha256Hex } from '@sluice/sdk'
import { appendAudit } from '../cold/audit-log.ts'
import { copiesOf } from '../connection/copy-before-upgrade.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { runSteps } from '../connection/run-steps.ts'
import { AUDIT } from './dialect.ts'
import type { HistoryCache } from './history-cache.ts'
import { endOfPrefix, toBytes } from './key-value.ts'
import { emptyLog, shrink } from './space.ts'

const RUNS = `
  SELECT 1 FROM turns WHERE ended_at IS NULL AND inbox IS NULL AND session_id = ?1
  UNION ALL SELECT 1 FROM inbox WHERE state = 'running' AND state <> 'done' AND session = ?1 LIMIT 1`
const SAID = 'SELECT count(*) AS count FROM messages WHERE session = (SELECT number FROM sessions WHERE id = ?)'
const DROP_SESSION = 'DELETE FROM sessions WHERE id = ?'
const DROP_SESSION_KEYS = 'DELETE FROM key_values WHERE key >= ? AND key < ?'
const GIVE_UP_WAITING = `
  UPDATE inbox SET state = 'done', next_at = NULL, ended_at = ?2 WHERE state = 'pending' AND state <> 'done' AND session = ?1`

// A slice ends a fixed number of rows further on, so that its size is bounded even when few rows match.
const NEXT_INBOX = 'SELECT max(number) AS last FROM (SELECT number FROM inbox WHERE number > ? ORDER BY number LIMIT ?)'
/** With the commands and changes of the session, whose lanes are others. */
const MESSAGES =
  "SELECT number, turn_id AS turn, batch FROM inbox WHERE number > ?1 AND number <= ?2 AND session IN (?3, 'command:' || ?3, 'change:' || ?3)"
const ERASE_MESSAGE = `
  UPDATE inbox SET
    sender = '', session = '', message_id = '', batch = NULL, message_json = NULL, error = NULL, draft = NULL, trace = NULL
  WHERE number = ?`
const NEEDING = "SELECT 1 FROM inbox WHERE batch = first.number AND state <> 'done' AND session <> ?2"
const ERASE_BODY = `
  UPDATE inbox AS first SET raw = NULL
  WHERE number = ?1 AND raw IS NOT NULL AND (session IN ('', ?2) OR state = 'done') AND NOT EXISTS (${NEEDING})`
const HAS_BODY = 'SELECT 1 FROM inbox WHERE number = ? AND raw IS NOT NULL'
const ERASE_REPLY = `
  UPDATE outbox SET
    to_json = '{"to":""}', text = '', extras_json = NULL, error = NULL, provider_id = NULL, client_id = '', trace = NULL, next_at = NULL,
    ended_at = CASE WHEN state IN ('queued', 'failed') THEN ?2 ELSE ended_at END,
    state = CASE WHEN state IN ('queued', 'failed') THEN 'dead' ELSE state END`
const ERASE_REPLIES = `${ERASE_REPLY} WHERE inbox = ?1`
const ERASE_PROMPTS = `
  ${ERASE_REPLY} WHERE number IN (
    SELECT outbox FROM approval_prompts WHERE approval IN (SELECT number FROM approvals WHERE run_id = ?1))`
const DROP_MEMORIES = 'DELETE FROM memories WHERE owner = ?'
const DROP_APPROVALS = 'DELETE FROM approvals WHERE run_id = ?'

const NEXT_TURN = 'SELECT max(id) AS last FROM (SELECT id FROM turns WHERE id > ? ORDER BY id LIMIT ?)'
const ERASE_TURNS = `
  UPDATE turns SET
    session_id = NULL, owner = NULL, session = NULL, up_to = NULL, input = '', response = NULL, error_json = NULL, context_json = NULL,
    checkpoint_json = NULL
  WHERE id > ? AND id <= ? AND session_id = ? AND ended_at IS NOT NULL RETURNING id`

/** The number of rows examined in one transaction. */
const SLICE_ROWS = 2_000

type Counts = Omit<Erased, 'purged' | 'copies'>

/** The counts of one slice, and the row after which the next slice begins. */
interface Slice<Position> {
  readonly counts: Partial<Counts>
  readonly next: Position
}

/** Erases conversations of one store. */
export class ConversationEraser {
  readonly #db: Database
  readonly #writer: Writer
  readonly #cache: HistoryCache
  readonly #file: string

  constructor(db: Database, writer: Writer, cache: HistoryCache, file: string) {
    this.#db = db
    this.#writer = writer
    this.#cache = cache
    this.#file = file
  }

  /** Erases in many small commits. After a crash, erasing the same conversation again finds the rest. */
  async erase(id: string, { atMs, by, memoriesOf }: Parameters<SessionStore['erase']>[1]): Promise<Erased | undefined> {
    const db = this.#db
    const writer = this.#writer
    const total = { historyTurns: 0, turns: 0, messages: 0, replies: 0, approvals: 0, memories: 0, held: 0 }
    const add = (counts: Partial<Counts>): void => {
      for (const [name, count] of Object.entries(counts)) total[name as keyof typeof total] += count
    }
    const isKnown = db.read(() => db.get('SELECT 1 FROM sessions WHERE id = ?', id)) !== undefined
    const erased = await writer.write(() => this.#eraseSession(id, atMs))
    if (!erased) {
      throw new AppError(
        'conflict',
        'A turn of this conversation runs or waits for a person. Erase the conversation after the turn has ended.',
      )
    }
    add(erased)
    this.#cache.delete(id)
    if (memoriesOf !== undefined) add({ memories: await writer.write(() => db.run(DROP_MEMORIES, memoriesOf)) })
    await this.#eachSlice(0, (after) => this.#eraseMessages(id, after, atMs), add)
    await this.#eachSlice('', (after) => this.#eraseTurns(id, after, atMs), add)
    if (!isKnown && total.turns + total.messages + total.memories === 0) return undefined
    const detail = {
      conversation: sha256Hex(id).slice(0, 16),
      said: total.historyTurns,
      messages: total.messages,
      memories: total.memories,
    }
    const record = actionRecord({ kind: 'conversation_erased', atMs, by, detail })
    await writer.write(() => runSteps(db, appendAudit(AUDIT, [record])))
    await shrink(db, writer, 0)
    return { ...total, purged: emptyLog(db), copies: copiesOf(this.#file).map((copy) => copy.file) }
  }

  /** Runs `eraseSlice` in a transaction for each slice, until it returns undefined. */
  async #eachSlice<Position>(
    first: Position,
    eraseSlice: (after: Position) => Slice<Position> | undefined,
    add: (counts: Partial<Counts>) => void,
  ): Promise<void> {
    let after = first
    for (;;) {
      const slice = await this.#writer.write(() => eraseSlice(after))
      if (!slice) return
      add(slice.counts)
      after = slice.next
    }
  }

  /** Part of a write. Returns undefined while a turn of the session runs. */
  #eraseSession(id: string, atMs: number): { readonly historyTurns: number } | undefined {
    const db = this.#db
    if (db.get(RUNS, id)) return undefined
    const historyTurns = db.get<{ count: number }>(SAID, id)?.count ?? 0
    db.run(DROP_SESSION, id)
    const keys = toBytes(sessionKeys(id))
    db.run(DROP_SESSION_KEYS, keys, endOfPrefix(keys) ?? null)
    db.run(GIVE_UP_WAITING, id, atMs)
    return { historyTurns }
  }

  /** Part of a write. Returns undefined after the last slice. */
  #eraseMessages(id: string, after: number, atMs: number): Slice<number> | undefined {
    const db = this.#db
    const { last } = db.get<{ last: number | null }>(NEXT_INBOX, after, SLICE_ROWS) ?? {}
    if (typeof last !== 'number') return undefined
    const rows = db.all<{ number: number; turn: string | null; batch: number | null }>(MESSAGES, after, last, id)
    const counts = { messages: rows.length, replies: 0, approvals: 0, held: 0 }
    for (const { number, turn, batch } of rows) {
      counts.replies += db.run(ERASE_REPLIES, number, atMs)
      db.run(ERASE_MESSAGE, number)
      const request = batch ?? number
      db.run(ERASE_BODY, request, id)
      if (db.get(HAS_BODY, request)) counts.held += 1
      const erased = turn === null ? undefined : this.#eraseApprovals(turn, atMs)
      counts.replies += erased?.replies ?? 0
      counts.approvals += erased?.approvals ?? 0
    }
    return { counts, next: last }
  }

  /** Part of a write. Returns undefined after the last slice. */
  #eraseTurns(id: string, after: string, atMs: number): Slice<string> | undefined {
    const db = this.#db
    const { last } = db.get<{ last: string | null }>(NEXT_TURN, after, SLICE_ROWS) ?? {}
    if (typeof last !== 'string') return undefined
    const turns = db.all<{ id: string }>(ERASE_TURNS, after, last, id)
    const counts = { turns: turns.length, replies: 0, approvals: 0 }
    for (const turn of turns) {
      const { replies, approvals } = this.#eraseApprovals(turn.id, atMs)
      counts.replies += replies
      counts.approvals += approvals
    }
    return { counts, next: last }
  }

  /** Part of a write: erases the approvals of a turn and their prompts. */
  #eraseApprovals(turn: string, atMs: number): { readonly replies: number; readonly approvals: number } {
    return { replies: this.#db.run(ERASE_PROMPTS, turn, atMs), approvals: this.#db.run(DROP_APPROVALS, turn) }
  }
}
