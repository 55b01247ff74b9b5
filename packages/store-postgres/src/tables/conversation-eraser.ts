/** Erases a conversation from all tables, in small transactions. */
import { AppError, actionRecord, type Erased, type SessionStore, sessionKeys, sha256Hex, shardOfSession } from '@sluice/sdk'
import { appendAudit, endOfPrefix, toBytes } from '@sluice/store/shared'
import { isAliveProcess } from '../cluster/live-process.ts'
import { sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import type { Tx } from '../connection/group-commit.ts'
import { runSteps } from '../connection/run-steps.ts'
import { AUDIT } from './dialect.ts'

const IS_KNOWN = 'SELECT 1 FROM sessions WHERE id = $1'
const RUNS = `
  SELECT 1 FROM turns WHERE ended_at IS NULL AND inbox IS NULL AND hashtextextended(session_id, 0) = hashtextextended($1, 0)
    AND session_id = $1
  UNION ALL SELECT 1 FROM inbox WHERE ended_at IS NULL AND state = 'running' AND shard = $2 AND session = $1 LIMIT 1`
/** Holds the session until the transaction ends, so that no turn that a client waits for reads what is being erased. */
const HOLD_SESSION = `
  INSERT INTO leases (name, epoch, process) VALUES ('session/' || $1::text, nextval('epochs'), 'erases')
  ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, process = excluded.process, turn = NULL, owner = NULL
    WHERE NOT ${isAliveProcess('leases.process')}
  RETURNING epoch`
const LEAVE_SESSION = 'DELETE FROM leases WHERE epoch = $1'
const DROP_SAID = 'DELETE FROM messages WHERE session = (SELECT number FROM sessions WHERE id = $1) RETURNING up_to'
const DROP_SESSION = 'DELETE FROM sessions WHERE id = $1'
const DROP_SESSION_KEYS = 'DELETE FROM key_values WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2)'
const GIVE_UP_WAITING = `
  UPDATE inbox SET state = 'done', next_at = NULL, ended_at = $2 WHERE ended_at IS NULL AND state = 'pending' AND shard = $3
    AND session = $1`
const DROP_MEMORIES = 'DELETE FROM memories WHERE owner = $1 RETURNING number'

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
const NEEDING = "SELECT 1 FROM inbox WHERE batch = first.number AND state <> 'done' AND session <> $2"
const ERASE_BODY = `
  DELETE FROM inbox_bodies USING inbox AS first
  WHERE inbox_bodies.number = $1 AND first.number = $1 AND (session IN ('', $2) OR state = 'done') AND NOT EXISTS (${NEEDING})`
const HAS_BODY = 'SELECT 1 FROM inbox_bodies WHERE number = $1'
const ERASE_REPLY = `
  UPDATE outbox SET
    to_json = '{"to":""}', text = '', extras_json = NULL, error = NULL, provider_id = NULL, client_id = '', trace = NULL, next_at = NULL,
    ended_at = CASE WHEN state IN ('queued', 'failed') THEN $2 ELSE ended_at END,
    marked = CASE WHEN state IN ('queued', 'failed') THEN 'dead' ELSE marked END,
    state = CASE WHEN state IN ('queued', 'failed') THEN 'dead' ELSE state END`
const ERASE_REPLIES = `${ERASE_REPLY} WHERE inbox = $1 RETURNING number`
const ERASE_PROMPTS = `
  ${ERASE_REPLY} WHERE number IN (
    SELECT outbox FROM approval_prompts WHERE approval IN (SELECT number FROM approvals WHERE run_id = $1)) RETURNING number`
const DROP_APPROVALS = 'DELETE FROM approvals WHERE run_id = $1 RETURNING number'
const ERASE_TURNS = `
  UPDATE turns SET
    session_id = NULL, owner = NULL, session = NULL, up_to = NULL, input = '', response = NULL, error_json = NULL, context_json = NULL,
    checkpoint_json = NULL
  WHERE id IN (SELECT id FROM turns WHERE hashtextextended(session_id, 0) = hashtextextended($1, 0) AND session_id = $1
    AND ended_at IS NOT NULL LIMIT $2) RETURNING id`

/** The number of rows examined in one transaction. */
const SLICE_ROWS = 500

/** After a crash, erasing the same conversation again finds the rest. */
export async function eraseConversation(
  db: Database,
  id: string,
  { atMs, by, memoriesOf }: Parameters<SessionStore['erase']>[1],
): Promise<Erased | undefined> {
  const { writer } = db
  const isKnown = (await db.get(IS_KNOWN, id)) !== undefined
  const historyTurns = await writer.transaction((tx) => eraseSession(tx, id, atMs))
  if (historyTurns === undefined) {
    throw new AppError(
      'conflict',
      'A turn of this conversation runs or waits for a person. Erase the conversation after the turn has ended.',
    )
  }
  const memories = memoriesOf === undefined ? 0 : (await writer.write(sql(DROP_MEMORIES, memoriesOf))).length
  const total = { historyTurns, turns: 0, messages: 0, replies: 0, approvals: 0, memories, held: 0 }
  for (let after: number | undefined = 0; after !== undefined; ) {
    const from: number = after
    const slice = await writer.transaction((tx) => eraseMessages(tx, id, from, atMs))
    for (const name of ['messages', 'replies', 'approvals', 'held'] as const) total[name] += slice.counts[name]
    after = slice.next
  }
  for (let count = SLICE_ROWS; count === SLICE_ROWS; total.turns += count) {
    const slice = await writer.transaction((tx) => eraseTurns(tx, id, atMs))
    count = slice.turns
    total.replies += slice.replies
    total.approvals += slice.approvals
  }
  if (!isKnown && total.turns + total.messages + total.memories === 0) return undefined
  const detail = {
    conversation: sha256Hex(id).slice(0, 16),
    said: total.historyTurns,
    messages: total.messages,
    memories: total.memories,
  }
  const record = actionRecord({ kind: 'conversation_erased', atMs, by, detail })
  await writer.transaction((tx) => runSteps(tx, appendAudit(AUDIT, [record])))
  // The server's vacuum overwrites the deleted rows later, and its write-ahead log keeps them for a while.
  return { ...total, purged: false, copies: [] }
}

/** Part of a transaction. Resolves to the number of erased turns; to undefined while a turn of the session runs. */
async function eraseSession(tx: Tx, id: string, atMs: number): Promise<number | undefined> {
  const held = await tx.get<{ epoch: number }>(HOLD_SESSION, id)
  if (!held || (await tx.get(RUNS, id, shardOfSession(id)))) {
    if (held) await tx.all(LEAVE_SESSION, held.epoch)
    return undefined
  }
  const said = await tx.all(DROP_SAID, id)
  await tx.all(DROP_SESSION, id)
  const keys = toBytes(sessionKeys(id))
  await tx.all(DROP_SESSION_KEYS, keys, endOfPrefix(keys) ?? null)
  await tx.all(GIVE_UP_WAITING, id, atMs, shardOfSession(id))
  await tx.all(LEAVE_SESSION, held.epoch)
  return said.length
}

/** Part of a transaction. `next` is undefined after the last slice. */
async function eraseMessages(tx: Tx, id: string, after: number, atMs: number) {
  const counts = { messages: 0, replies: 0, approvals: 0, held: 0 }
  const { last = null } = (await tx.get<{ last: number | null }>(NEXT_INBOX, after, SLICE_ROWS)) ?? {}
  if (last === null) return { counts, next: undefined }
  const rows = await tx.all<{ number: number; turn: string | null; batch: number | null }>(MESSAGES, after, last, id)
  counts.messages = rows.length
  for (const { number, turn, batch } of rows) {
    counts.replies += (await tx.all(ERASE_REPLIES, number, atMs)).length
    await tx.all(ERASE_MESSAGE, number)
    const request = batch ?? number
    await tx.all(ERASE_BODY, request, id)
    if (await tx.get(HAS_BODY, request)) counts.held += 1
    const erased = turn === null ? undefined : await eraseApprovals(tx, turn, atMs)
    counts.replies += erased?.replies ?? 0
    counts.approvals += erased?.approvals ?? 0
  }
  return { counts, next: last }
}

/** Part of a transaction. */
async function eraseTurns(tx: Tx, id: string, atMs: number) {
  const turns = await tx.all<{ id: string }>(ERASE_TURNS, id, SLICE_ROWS)
  const counts = { turns: turns.length, replies: 0, approvals: 0 }
  for (const turn of turns) {
    const { replies, approvals } = await eraseApprovals(tx, turn.id, atMs)
    counts.replies += replies
    counts.approvals += approvals
  }
  return counts
}

/** Part of a transaction: erases the approvals of a turn and their prompts. */
async function eraseApprovals(tx: Tx, turn: string, atMs: number) {
  const replies = (await tx.all(ERASE_PROMPTS, turn, atMs)).length
  return { replies, approvals: (await tx.all(DROP_APPROVALS, turn)).length }
}
