/** Replies as rows of the outbox. Writes of several groups queue them. */
import type { NewReply } from '@sluice/sdk'
import { type Steps, statement } from '../cold/cold-database.ts'
import type { Database } from '../connection/database.ts'

const ADD = `
  INSERT INTO outbox (channel, account, to_json, text, part, parts, client_id, inbox, turn_id, created_at, extras_json, trace)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/**
 * Builds the rows outside the transaction. The returned part of a write queues the replies to an inbox message, or proactive
 * messages when `inbox` is null, and returns their numbers.
 */
export function prepareReplies(db: Database, replies: readonly NewReply[], inbox: number | null): () => number[] {
  const rows = replies.map((reply) => rowOf(reply, inbox))
  return () => rows.flatMap((row) => db.insert(ADD, ...row) ?? [])
}

/** Queues proactive messages. Returns their numbers. */
export function* queueReplies(replies: readonly NewReply[]): Steps<readonly number[]> {
  const rows = yield replies.map((reply) => statement(`${ADD} RETURNING number`, ...rowOf(reply, null)))
  return (rows.flat() as { readonly number: number }[]).map(({ number }) => number)
}

const rowOf = (
  { channel, account, to, text, part, parts, clientId, turnId, createdAtMs, extras, trace }: NewReply,
  inbox: number | null,
) => [
  channel,
  account,
  JSON.stringify(to),
  text,
  part,
  parts,
  clientId,
  inbox,
  turnId,
  createdAtMs,
  extras ? JSON.stringify(extras) : null,
  trace ?? null,
]
