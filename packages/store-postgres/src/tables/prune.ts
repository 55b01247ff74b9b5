/** Deletes data beyond its retention in small transactions. The server's vacuum makes the space free for new rows. */
import type { DeletedRows, Retention } from '@sluice/sdk'
import { QUARTER_MS } from '@sluice/store/shared'
import { sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { usedBytes } from './space.ts'

const DROP_NONCES = 'DELETE FROM nonces WHERE key IN (SELECT key FROM nonces WHERE until <= $1 ORDER BY until LIMIT $2) RETURNING 1'
// Messages that still need the body stored with the first one of their batch.
const NEEDING = "SELECT 1 FROM inbox WHERE batch = first.number AND state <> 'done'"
// A reply finds its conversation through the message that it answers.
const REPLIES = 'SELECT 1 FROM outbox WHERE inbox = first.number'
const OLD_INBOX = `
  FROM inbox AS first WHERE ended_at < $1 AND received_at < $2
  AND NOT EXISTS (${NEEDING} AND (ended_at IS NULL OR ended_at >= $1)) AND NOT EXISTS (${REPLIES})`
const DROP_INBOX = `
  WITH old AS (DELETE FROM inbox WHERE number IN (SELECT number ${OLD_INBOX} ORDER BY ended_at LIMIT $3) RETURNING number),
    bodies AS (DELETE FROM inbox_bodies WHERE number IN (SELECT number FROM old))
  SELECT number FROM old`
const OLD_OUTBOX = 'FROM outbox WHERE ended_at < $1'
const DROP_OUTBOX = `DELETE FROM outbox WHERE number IN (SELECT number ${OLD_OUTBOX} ORDER BY ended_at LIMIT $2) RETURNING 1`
const OLD_APPROVALS = 'FROM approvals WHERE settled_at < $1'
const DROP_APPROVALS = `DELETE FROM approvals WHERE number IN (SELECT number ${OLD_APPROVALS} ORDER BY settled_at LIMIT $2) RETURNING 1`
const OLD_RUNS = 'FROM sop_runs WHERE ended_at < $1'
const DROP_RUNS = `DELETE FROM sop_runs WHERE number IN (SELECT number ${OLD_RUNS} ORDER BY ended_at LIMIT $2) RETURNING 1`
const OLD_SAID = 'FROM messages WHERE at < $1'
const SAID_BYTES = 'octet_length(messages_json) AS bytes'
const DROP_SAID = `
  DELETE FROM messages WHERE (session, up_to) IN (SELECT session, up_to ${OLD_SAID} ORDER BY at LIMIT $2) RETURNING ${SAID_BYTES}`
const DROP_SUMMARIES = `
  DELETE FROM session_summaries WHERE session IN (SELECT session FROM session_summaries WHERE up_to_at < $1 ORDER BY up_to_at LIMIT $2)
  RETURNING 1`
const OLD_SESSIONS = 'FROM sessions WHERE last_active_at < $1'
const DROP_SESSIONS = `
  WITH old AS (DELETE FROM sessions WHERE number IN (SELECT number ${OLD_SESSIONS} ORDER BY last_active_at LIMIT $2) RETURNING number),
    said AS (DELETE FROM messages WHERE session IN (SELECT number FROM old))
  SELECT number FROM old`
const OLD_TURNS = 'FROM turns WHERE ended_at < $1'
// A trigger keeps what they cost. Processes of the release before read it from the table costs.
const DROP_TURNS = `
  WITH old AS (
      DELETE FROM turns WHERE id IN (SELECT id ${OLD_TURNS} ORDER BY ended_at LIMIT $2)
      RETURNING agent, floor(ended_at / ${QUARTER_MS})::bigint AS quarter, cost_usd,
        coalesce(octet_length(input), 0) + coalesce(octet_length(response), 0) + coalesce(octet_length(context_json), 0) AS bytes),
    kept AS (
      INSERT INTO costs (quarter, agent, usd) SELECT quarter, agent, sum(cost_usd) FROM old WHERE cost_usd <> 0 GROUP BY 1, 2 ORDER BY 1, 2
      ON CONFLICT (quarter, agent) DO UPDATE SET usd = costs.usd + excluded.usd)
  SELECT bytes FROM old`
const DROP_COSTS = ['DELETE FROM dropped_costs WHERE quarter < $1', 'DELETE FROM costs WHERE quarter < $1']
const DROP_SENT = `
  DELETE FROM outbox WHERE number IN (SELECT number FROM outbox WHERE state = 'sent' ORDER BY ended_at LIMIT $1)
  RETURNING octet_length(text) + coalesce(octet_length(extras_json), 0) AS bytes`
const dropContent = (state: string, content: string, set: string): string => `
  WITH old AS (
      SELECT first.number, coalesce(octet_length(message_json), 0) + coalesce(octet_length(body.raw), 0) AS bytes
      FROM inbox AS first LEFT JOIN inbox_bodies AS body ON body.number = first.number
      WHERE ${state} AND (${content}) AND NOT EXISTS (${NEEDING}) ORDER BY first.number LIMIT $1),
    bodies AS (DELETE FROM inbox_bodies WHERE number IN (SELECT number FROM old)),
    dropped AS (UPDATE inbox SET ${set} WHERE number IN (SELECT number FROM old))
  SELECT bytes FROM old`
const HAS_BODY = 'message_json IS NOT NULL OR body.raw IS NOT NULL'
const DROP_CONTENT = dropContent("state = 'done'", HAS_BODY, 'message_json = NULL')
const DROP_LIMITED_CONTENT = dropContent("marked = 'limited'", `${HAS_BODY} OR batch IS NOT NULL`, 'message_json = NULL, batch = NULL')
const LIMITS_KEPT_MS = 86_400_000
const DROP_ADMISSIONS = `
  DELETE FROM admissions WHERE (id, client) IN (SELECT id, client FROM admissions WHERE NOT open AND at < $1 ORDER BY at LIMIT $2)
  RETURNING 1`
const DROP_LOOPS = 'DELETE FROM loops WHERE number < (SELECT min(number) FROM inbox)'
// No limit looks back further than a day.
const DROP_SPENDING = 'DELETE FROM spending WHERE day < floor($1::float8 / 86400000) - 1'
const DROP_HELD = 'DELETE FROM held_back WHERE until < $1::float8 - 86400000 AND news < $1 - 86400000'

/** The number of rows dropped between two comparisons with the size limit. */
const CUT_SLICE_ROWS = 250
/** The longest span of a list of costs, which is longer than the period of any budget. */
const COSTS_KEPT_MS = 400 * 86_400_000

export async function prune(db: Database, retention: Retention): Promise<DeletedRows> {
  const { writer } = db
  const { endedBeforeMs, idsBeforeMs, historyBeforeMs, nowMs, limit } = retention
  const drop = (text: string, ...values: unknown[]): Promise<number> => writer.dropInSlices(limit, text, ...values)
  const dropAll = (text: string, ...values: unknown[]) => writer.dropInSlices(Number.MAX_SAFE_INTEGER, text, ...values)
  // Nonces have an expiry of their own instead of a retention, so all expired ones are dropped.
  await dropAll(DROP_NONCES, nowMs)
  await dropAll(DROP_ADMISSIONS, nowMs - LIMITS_KEPT_MS)
  await writer.write(
    ...DROP_COSTS.map((text) => sql(text, Math.floor((nowMs - COSTS_KEPT_MS) / QUARTER_MS))),
    sql(DROP_SPENDING, nowMs),
    sql(DROP_HELD, nowMs),
    sql(DROP_LOOPS),
  )
  const replies = await drop(DROP_OUTBOX, endedBeforeMs)
  const messages = await drop(DROP_INBOX, Math.min(endedBeforeMs, idsBeforeMs), idsBeforeMs)
  const approvals = await drop(DROP_APPROVALS, endedBeforeMs)
  const turns = await drop(DROP_TURNS, turnsBefore(retention))
  const runs = await drop(DROP_RUNS, endedBeforeMs)
  const historyTurns = await drop(DROP_SAID, historyBeforeMs)
  await drop(DROP_SUMMARIES, historyBeforeMs)
  const conversations = await drop(DROP_SESSIONS, historyBeforeMs)
  const cut = await cutToSize(db, retention)
  return {
    messages,
    contents: cut.contents,
    replies: replies + cut.replies,
    approvals,
    turns: turns + cut.turns,
    runs,
    historyTurns: historyTurns + cut.historyTurns,
    conversations,
  }
}

const turnsBefore = ({ endedBeforeMs, keysBeforeMs }: Retention): number => Math.min(endedBeforeMs, keysBeforeMs)

/**
 * Drops the oldest rows until at most `bytesMax` bytes are in use: contents first, then replies, turns and conversations. Keeps dead
 * letters and unfinished work.
 */
async function cutToSize(db: Database, { bytesMax, keysBeforeMs, nowMs, limit }: Retention) {
  let used = await usedBytes(db)
  const cut = async (text: string, ...values: unknown[]): Promise<number> => {
    for (let dropped = 0; ; ) {
      const rows = Math.min(CUT_SLICE_ROWS, limit - dropped)
      if (rows <= 0 || Math.max(used, 1) <= bytesMax) return dropped
      const freed = await db.writer.write<{ bytes: number }>(sql(text, ...values, rows))
      used -= freed.reduce((sum, { bytes }) => sum + bytes, 0)
      dropped += freed.length
      if (freed.length < rows) return dropped
    }
  }
  const result = {
    contents: (await cut(DROP_LIMITED_CONTENT)) + (await cut(DROP_CONTENT)),
    replies: await cut(DROP_SENT),
    turns: await cut(DROP_TURNS, Math.min(nowMs, keysBeforeMs)),
    historyTurns: await cut(DROP_SAID, Number.MAX_SAFE_INTEGER),
  }
  // The next call must not count again what this one has dropped.
  const changed = Object.values(result).some((count) => count > 0)
  if (changed) await db.writer.write(sql('ANALYZE inbox, inbox_bodies, outbox, turns, messages'))
  return result
}

/** Returns the number of rows that are old enough to be dropped. */
export async function prunable(db: Database, retention: Retention): Promise<DeletedRows> {
  const { endedBeforeMs, idsBeforeMs, historyBeforeMs } = retention
  const count = async (rows: string, ...values: number[]): Promise<number> =>
    (await db.get<{ count: number }>(`SELECT count(*) AS count ${rows}`, ...values))?.count ?? 0
  return {
    messages: await count(OLD_INBOX, Math.min(endedBeforeMs, idsBeforeMs), idsBeforeMs),
    contents: 0,
    replies: await count(OLD_OUTBOX, endedBeforeMs),
    approvals: await count(OLD_APPROVALS, endedBeforeMs),
    turns: await count(OLD_TURNS, turnsBefore(retention)),
    runs: await count(OLD_RUNS, endedBeforeMs),
    historyTurns: await count(OLD_SAID, historyBeforeMs),
    conversations: await count(OLD_SESSIONS, historyBeforeMs),
  }
}
