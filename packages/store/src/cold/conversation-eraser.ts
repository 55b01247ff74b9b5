/** Erases a conversation from all tables, in small transactions. */
import { AppError, actionRecord, type Erased, type SessionStore, sessionKeys, sha256Hex, shardOfSession } from '@sluice/sdk'
import { endOfPrefix, toBytes } from '../tables/key-bytes.ts'
import { appendAudit } from './audit-log.ts'
import { all, type ColdDatabase, first, type Steps, statement } from './cold-database.ts'

const IS_KNOWN = 'SELECT 1 FROM sessions WHERE id = $1'
const DROP_SAID = 'DELETE FROM messages WHERE session = (SELECT number FROM sessions WHERE id = $1) RETURNING up_to'
const DROP_SESSION = 'DELETE FROM sessions WHERE id = $1'
const DROP_SESSION_KEYS = 'DELETE FROM key_values WHERE key >= $1 AND key < $2 RETURNING key'
const DROP_MEMORIES = 'DELETE FROM memories WHERE owner = $1 RETURNING number'
const DROP_APPROVALS = 'DELETE FROM approvals WHERE run_id = $1 RETURNING number'

// A slice ends a fixed number of rows further on, so that its size is bounded even when few rows match.
const NEXT_INBOX = 'SELECT max(number) AS last FROM (SELECT number FROM inbox WHERE number > $1 ORDER BY number LIMIT $2) AS slice'
/** With the commands and changes of the session, whose lanes are others. */
const MESSAGES = `
  SELECT number, turn_id AS turn, batch FROM inbox
  WHERE number > $1 AND number <= $2 AND session IN ($3, 'command:' || $3, 'change:' || $3) ORDER BY number`
const ERASE_MESSAGE = `
  UPDATE inbox SET
    sender = '', session = '', message_id = '', batch = NULL, message_json = NULL, error = NULL, draft = NULL, trace = NULL
  WHERE number = $1`

/** The number of rows examined in one transaction. */
const SLICE_ROWS = 1_000

type Counts = Omit<Erased, 'purged' | 'copies'>

/** What differs between the databases. */
export interface EraseDialect {
  /** The condition that a turn is one of the session of parameter 1. */
  readonly turnOf: string
  /** The condition that an unfinished message is one of the session of parameter 1, whose shard is parameter 2. */
  readonly messageOf: string
  /** The columns of the outbox that repeat the state of a dead reply. */
  readonly alsoDead: readonly string[]
  /** Erases the body of a request (parameter 1), unless a message of another session than that of parameter 2 needs it. */
  readonly body: string
  readonly hasBody: string
  /** Runs steps while no turn of the session can begin. Returns undefined where one runs. */
  holding<Result>(id: string, steps: () => Steps<Result>): Steps<Result | undefined>
}

const textsOf = (erase: EraseDialect) => {
  const ERASE_REPLY = `
    UPDATE outbox SET
      to_json = '{"to":""}', text = '', extras_json = NULL, error = NULL, provider_id = NULL, client_id = '', trace = NULL, next_at = NULL,
      ended_at = CASE WHEN state IN ('queued', 'failed') THEN $2 ELSE ended_at END,
      ${erase.alsoDead.map((column) => `${column} = CASE WHEN state IN ('queued', 'failed') THEN 'dead' ELSE ${column} END,`).join(' ')}
      state = CASE WHEN state IN ('queued', 'failed') THEN 'dead' ELSE state END`
  return {
    RUNS: `
      SELECT 1 FROM turns WHERE ended_at IS NULL AND inbox IS NULL AND ${erase.turnOf}
      UNION ALL SELECT 1 FROM inbox WHERE state = 'running' AND ${erase.messageOf} LIMIT 1`,
    GIVE_UP_WAITING: `UPDATE inbox SET state = 'done', next_at = NULL, ended_at = $3 WHERE state = 'pending' AND ${erase.messageOf}`,
    ERASE_REPLIES: `${ERASE_REPLY} WHERE inbox = $1 RETURNING number`,
    ERASE_PROMPTS: `
      ${ERASE_REPLY} WHERE number IN (
        SELECT outbox FROM approval_prompts WHERE approval IN (SELECT number FROM approvals WHERE run_id = $1)) RETURNING number`,
    ERASE_TURNS: `
      UPDATE turns SET
        session_id = NULL, owner = NULL, session = NULL, up_to = NULL, input = '', response = NULL, error_json = NULL, context_json = NULL, steps_json = NULL,
        checkpoint_json = NULL
      WHERE id IN (SELECT id FROM turns WHERE ${erase.turnOf} AND ended_at IS NOT NULL LIMIT $2) RETURNING id`,
  }
}

/**
 * Resolves to undefined for an unknown conversation. `forget` is called once no turn can read the conversation any more. After a crash,
 * erasing the same conversation again finds the rest.
 */
export async function eraseConversation(
  db: ColdDatabase,
  erase: EraseDialect,
  id: string,
  { atMs, by, memoriesOf }: Parameters<SessionStore['erase']>[1],
  forget: () => void = () => undefined,
): Promise<Counts | undefined> {
  const texts = textsOf(erase)
  const isKnown = (await db.get(IS_KNOWN, id)) !== undefined
  const begun = await db.transaction(() => erase.holding(id, () => eraseSession(id)))
  if (begun === undefined) {
    throw new AppError(
      'conflict',
      'A turn of this conversation runs or waits for a person. Erase the conversation after the turn has ended.',
    )
  }
  forget()
  const memories = memoriesOf === undefined ? 0 : (await db.write(statement(DROP_MEMORIES, memoriesOf))).length
  const { historyTurns, keys } = begun
  const total = { historyTurns, turns: 0, messages: 0, replies: 0, approvals: 0, memories, held: 0 }
  for (let after: number | undefined = 0; after !== undefined; ) {
    const from: number = after
    const { next, ...counts }: Slice & { readonly next: number | undefined } = await db.transaction(() => eraseMessages(from))
    add(counts)
    after = next
  }
  for (let turns = SLICE_ROWS; turns === SLICE_ROWS; ) {
    const counts = await db.transaction(eraseTurns)
    add(counts)
    turns = counts.turns
  }
  if (!isKnown && keys === 0 && total.turns + total.messages + total.memories === 0) return undefined
  const detail = {
    conversation: sha256Hex(id).slice(0, 16),
    said: total.historyTurns,
    messages: total.messages,
    memories: total.memories,
  }
  const record = actionRecord({ kind: 'conversation_erased', atMs, by, detail })
  await db.transaction(() => appendAudit(db.dialect.audit, [record]))
  return total

  function add(counts: Slice): void {
    for (const [name, count] of Object.entries(counts)) total[name as keyof Slice] += count
  }

  /** Returns the numbers of erased turns of the history and of erased keys; undefined while a turn of the session runs. */
  function* eraseSession(sessionId: string): Steps<{ readonly historyTurns: number; readonly keys: number } | undefined> {
    const shard = shardOfSession(sessionId)
    if (yield* first(texts.RUNS, sessionId, shard)) return undefined
    const said = yield* all(DROP_SAID, sessionId)
    const prefix = toBytes(sessionKeys(sessionId))
    const [keys = []] = yield [
      statement(DROP_SESSION_KEYS, prefix, endOfPrefix(prefix) ?? prefix),
      statement(DROP_SESSION, sessionId),
      statement(texts.GIVE_UP_WAITING, sessionId, shard, atMs),
    ]
    return { historyTurns: said.length, keys: keys.length }
  }

  /** `next` is undefined after the last slice. */
  function* eraseMessages(after: number): Steps<Slice & { readonly next: number | undefined }> {
    const { last = null } = (yield* first<{ last: number | null }>(NEXT_INBOX, after, SLICE_ROWS)) ?? {}
    if (last === null) return { next: undefined }
    const rows = yield* all<{ number: number; turn: string | null; batch: number | null }>(MESSAGES, after, last, id)
    const counts = { messages: rows.length, replies: 0, approvals: 0, held: 0 }
    for (const { number, turn, batch } of rows) {
      const request = batch ?? number
      const [replies = [], , , held = []] = yield [
        statement(texts.ERASE_REPLIES, number, atMs),
        statement(ERASE_MESSAGE, number),
        statement(erase.body, request, id),
        statement(erase.hasBody, request),
      ]
      const erased = turn === null ? undefined : yield* eraseApprovals(turn)
      counts.replies += replies.length + (erased?.replies ?? 0)
      counts.approvals += erased?.approvals ?? 0
      counts.held += held.length
    }
    return { ...counts, next: last }
  }

  function* eraseTurns(): Steps<Slice & { readonly turns: number }> {
    const turns = yield* all<{ id: string }>(texts.ERASE_TURNS, id, SLICE_ROWS)
    const counts = { turns: turns.length, replies: 0, approvals: 0 }
    for (const turn of turns) {
      const erased = yield* eraseApprovals(turn.id)
      counts.replies += erased.replies
      counts.approvals += erased.approvals
    }
    return counts
  }

  /** Erases the approvals of a turn and their prompts. */
  function* eraseApprovals(turn: string): Steps<{ readonly replies: number; readonly approvals: number }> {
    const [replies = [], approvals = []] = yield [statement(texts.ERASE_PROMPTS, turn, atMs), statement(DROP_APPROVALS, turn)]
    return { replies: replies.length, approvals: approvals.length }
  }
}

/** The numbers of rows that one transaction has erased. */
type Slice = Partial<Pick<Counts, 'messages' | 'turns' | 'replies' | 'approvals' | 'held'>>
