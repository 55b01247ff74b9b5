/** Inbox messages, from their arrival to their end. The end of a turn, which also ends its message, is in `turns.ts`. */
import {
  type InboxEntry,
  type InboxStore,
  type MessageNews,
  type OwnedInboxStore,
  type ShardRange,
  shardOfSession,
  type WaitingMessage,
  type WaitingSince,
} from '@sluice/sdk'
import {
  appendAudit,
  discardRecord,
  endWithoutContent,
  hasJoined,
  type InboxColumns,
  joinMessages,
  joinTexts,
  type RecentIds,
  rowKey,
  type SessionColumns,
  toInboxRow,
  toSessionMessage,
} from '@sluice/store/shared'
import { sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { runSteps } from '../connection/run-steps.ts'
import { HOLDINGS } from './admissions.ts'
import { ERASE } from './conversation-eraser.ts'
import { createDeliveryTable, type TableDescription } from './delivery-table.ts'
import { AUDIT } from './dialect.ts'
import { createKeep, createKnown } from './keep-arrival.ts'
import { createStart, endedWithoutTurn, waitsForPerson } from './message-attempt.ts'
import { repliesTo } from './outbox.ts'
import { insertReplies, numbersOf, valuesOf } from './replies.ts'

const COLUMNS =
  'number, channel, account, message_id, sender, session, state, attempts, received_at, next_at, ended_at, turn_id, error, kind, replayed_at'
const TABLE: TableDescription = {
  name: 'inbox',
  columns: COLUMNS,
  final: 'done',
  marked: ['dead', 'limited', 'discarded'],
  sinceColumn: 'received_at',
  waiting: 'true',
}

const REQUEUE_TURN = `
  UPDATE turns SET status = 'queued', attempts = changed.attempts FROM changed WHERE turns.id = changed.turn_id AND turns.ended_at IS NULL`
// The attempt of a turn that waits for a person was not counted when it started, so it is not uncounted when it ends.
const UNCOUNTED = `greatest(attempts - (NOT ${waitsForPerson('inbox.turn_id')})::int, 0)`
const REQUEUED = `
  UPDATE inbox SET state = 'pending', next_at = $2, error = $3, attempts = CASE WHEN $4 THEN ${UNCOUNTED} ELSE attempts END
  WHERE number = $1 AND state = 'running' RETURNING turn_id, attempts`
const RETRY = `WITH changed AS (${REQUEUED}) ${REQUEUE_TURN}`
const RELEASE = `
  WITH changed AS (
    UPDATE inbox SET state = 'pending', attempts = ${UNCOUNTED} WHERE number = $1 AND state = 'running' RETURNING turn_id, attempts)
  ${REQUEUE_TURN}`
const DONE = `WITH ${endedWithoutTurn('$3::text')} ${insertReplies(4, 'NULL::bigint', 'WHERE EXISTS (SELECT 1 FROM ended)')} RETURNING number`
const LIMIT = `
  UPDATE inbox SET state = 'limited', marked = 'limited', next_at = NULL, ended_at = $2, error = $3
  WHERE number = $1 AND ended_at IS NULL RETURNING number`
/** Continues the CTE `changed` with the news that a client is held back, and with a notice if it is news. The parameters begin at `first`. */
const withNews = (changes: string, first: number): string => `
  WITH ${changes},
    held AS (SELECT hold_back($${first}, $${first + 1}, $${first + 2}, $${first + 3}, $${first + 4}) AS is_news FROM changed),
    queued AS (${insertReplies(first + 5, '$1::bigint', 'WHERE EXISTS (SELECT 1 FROM held WHERE is_news)')} RETURNING number)
  SELECT NULL AS number, is_news FROM held UNION ALL SELECT number, NULL FROM queued`
const RETRY_WITH_NEWS = withNews(`changed AS (${REQUEUED}), requeued AS (${REQUEUE_TURN})`, 5)
const LIMIT_WITH_NEWS = withNews(`changed AS (${LIMIT})`, 4)
const DRAFT = 'UPDATE inbox SET draft = $2 WHERE number = $1 AND ended_at IS NULL'
const KEEP_READ = 'UPDATE inbox SET message_json = $3 WHERE number = $1 AND turn_id = $2 AND ended_at IS NULL'
const DEAD = `
  UPDATE inbox SET state = 'dead', marked = 'dead', next_at = NULL, ended_at = $2, error = $3 WHERE number = $1 AND ended_at IS NULL
  RETURNING turn_id`
const FAIL_TURN = `
  UPDATE turns SET status = 'failed', error_json = $4, ended_at = $2, checkpoint_json = NULL FROM changed
  WHERE turns.id = changed.turn_id AND turns.ended_at IS NULL`
const MARK_DEAD = `WITH changed AS (${DEAD}) ${FAIL_TURN}`
const MARK_DEAD_WITH_NEWS = withNews(`changed AS (${DEAD}), failed AS (${FAIL_TURN})`, 5)
const CONTENT = `
  SELECT ${COLUMNS}, verdict, message_json, trace, joined, draft,
    (SELECT raw FROM inbox_bodies AS body WHERE body.number = coalesce(message.batch, message.number)) AS raw
  FROM inbox AS message WHERE number = $1`
const REPLAY = `
  UPDATE inbox SET state = 'pending', marked = NULL, attempts = 0, next_at = NULL, ended_at = NULL, turn_id = NULL, error = NULL,
    draft = NULL, joined = NULL, replayed_at = $2, kind = CASE WHEN kind IN ('approval_reply', 'change', 'command') THEN kind END
  WHERE number = $1 AND ended_at IS NOT NULL AND message_id <> ''
    AND (coalesce(message_json, '') <> '' OR EXISTS (SELECT 1 FROM inbox_bodies AS body WHERE body.number IN (inbox.number, inbox.batch)))
  RETURNING number`
/** The messages whose words the turn got while it ran. Their words are not in the message itself. */
const REPLAY_JOINED = `
  UPDATE inbox SET state = 'pending', ended_at = NULL, turn_id = NULL, joined = NULL, replayed_at = $2
  WHERE joined = $1 AND turn_id IS NOT NULL AND ended_at IS NOT NULL AND message_id <> ''
    AND (coalesce(message_json, '') <> '' OR EXISTS (SELECT 1 FROM inbox_bodies AS body WHERE body.number IN (inbox.number, inbox.batch)))
  RETURNING number`
const DISCARD = `
  UPDATE inbox SET state = 'discarded', marked = 'discarded' WHERE number = $1 AND marked IN ('dead', 'limited') RETURNING number, channel`

const OF_SESSION = `
  SELECT number, sender, state, kind, verdict, turn_id AS "turnId", received_at AS "receivedAtMs" FROM inbox
  WHERE ended_at IS NULL AND shard = $2 AND session = $1 ORDER BY number`

const BESIDE = `
  SELECT ${COLUMNS} FROM inbox WHERE ended_at IS NULL AND (shard, session) IN (SELECT shard, session FROM inbox WHERE number = ANY ($1::bigint[]))
  ORDER BY number`
const NUMBER = 'SELECT number FROM inbox WHERE key = $1'
/** Carries out the change of a message (parameter 2) that a report (parameter 1) asks for, and ends the report. */
const changeBy = (set: string): string => `
  WITH report AS (SELECT number FROM inbox WHERE number = $1 AND ended_at IS NULL FOR UPDATE),
    changed AS (
      UPDATE inbox SET ${set} WHERE inbox.number = $2 AND ended_at IS NULL AND turn_id IS NULL AND EXISTS (SELECT 1 FROM report)
        AND ($4::text IS NULL OR coalesce(message_json, '') = '' OR message_json = $4)
      RETURNING number),
    ended AS (
      UPDATE inbox SET state = 'done', next_at = NULL, ended_at = $3, error = NULL
      WHERE number = (SELECT number FROM report) AND EXISTS (SELECT 1 FROM changed))
  SELECT number FROM changed`
const DELETE = changeBy("state = 'done', next_at = NULL, ended_at = $3, error = NULL")
const REPLACE = changeBy('message_json = $5')

interface Content extends InboxColumns {
  readonly verdict: string
  readonly message_json: string | null
  readonly raw: Buffer | null
  readonly trace: string | null
  readonly joined: number | null
  readonly draft: string | null
}

/** `recent` holds the ids of recent messages; the caller clears it after pruning. */
export function createInbox(db: Database, recent: RecentIds): InboxStore {
  const { writer, clock } = db
  const table = createDeliveryTable<InboxColumns>(db, TABLE)
  const get = async (number: number): Promise<InboxEntry | undefined> => {
    const row = await db.get<Content>(CONTENT, number)
    if (!row) return undefined
    return {
      ...toInboxRow(row),
      ...(row.kind !== null && { kind: row.kind }),
      verdict: row.verdict,
      raw: row.raw && new Uint8Array(row.raw),
      message: JSON.parse(row.message_json ?? 'null'),
      ...(row.joined !== null && { joinedTo: row.joined }),
      ...(row.draft !== null && { draft: row.draft }),
      ...(row.trace !== null && { trace: row.trace }),
      replies: await repliesTo(db, number),
    }
  }
  /** Runs a statement of `withNews`, whose first parameters are `values`. */
  async function withNotice({ held, quietMs, notice }: MessageNews, statement: string, values: readonly unknown[]) {
    const { client, cause, sinceMs, untilMs } = held
    const news = [client, cause, sinceMs, untilMs, quietMs]
    const rows = await writer.add(HOLDINGS, { client, cause, statement: sql(statement, ...values, ...news, ...valuesOf(notice)) })
    return { isNews: rows.some(({ is_news }) => is_news === true), replies: rows.flatMap((row) => (row.number as number | null) ?? []) }
  }
  return {
    keep: createKeep(db, recent),
    known: createKnown(db, recent),
    start: createStart(db),
    async retry(number, { error, atMs, uncounted, news }) {
      const values = [number, db.serverClock.fromLocal(atMs), error, uncounted === true]
      if (news) return (await withNotice(news, RETRY_WITH_NEWS, values)).replies
      await writer.write(sql(RETRY, ...values))
      return []
    },
    async release(number) {
      await writer.write(sql(RELEASE, number))
    },
    done: async (number, atMs, replies = [], reason) =>
      numbersOf(await writer.write(sql(DONE, number, atMs, reason ?? null, ...valuesOf(replies)))),
    async drop(number, atMs) {
      await writer.transaction((tx) => runSteps(tx, endWithoutContent(ERASE, number, atMs)))
    },
    async limit(number, { error, atMs, news }) {
      if (!news) {
        await writer.write(sql(LIMIT, number, atMs, error))
        return { isNews: false, replies: [] }
      }
      return withNotice(news, LIMIT_WITH_NEWS, [number, atMs, error])
    },
    async draft(number, providerId) {
      await writer.write(sql(DRAFT, number, providerId))
    },
    async keepRead(number, turnId, message) {
      await writer.write(sql(KEEP_READ, number, turnId, JSON.stringify(message)))
    },
    async markDead(number, { error, atMs, news }) {
      const values = [number, atMs, error, JSON.stringify({ code: 'internal', message: error })]
      if (news) return (await withNotice(news, MARK_DEAD_WITH_NEWS, values)).replies
      await writer.write(sql(MARK_DEAD, ...values))
      return []
    },
    list: async (filter) => (await table.newest(filter)).map(toInboxRow),
    get,
    async find(channel, { account, id }) {
      const found = await db.get<{ number: number }>(NUMBER, rowKey(joinTexts(channel, account, id)))
      return found && get(found.number)
    },
    join: (join) => hasJoined(writer.transaction((tx) => runSteps(tx, joinMessages(join)))),
    async change(report, { number, was, message, atMs }) {
      const read = was ? JSON.stringify(was) : null
      const change = message ? sql(REPLACE, report, number, atMs, read, JSON.stringify(message)) : sql(DELETE, report, number, atMs, read)
      return (await writer.write(change)).length > 0
    },
    async ofSession(session) {
      const rows = await db.all<SessionColumns>(OF_SESSION, session, shardOfSession(session))
      return rows.map(toSessionMessage)
    },
    replay: (number) =>
      writer.transaction(async (tx) => {
        if (!(await tx.get(REPLAY, number, clock.nowMs()))) return false
        await tx.all(REPLAY_JOINED, number, clock.nowMs())
        return true
      }),
    discard: (number, discard) =>
      writer.transaction(async (tx) => {
        const row = await tx.get<{ number: number; channel: string }>(DISCARD, number)
        if (row) await runSteps(tx, appendAudit(AUDIT, [discardRecord('inbox', row, discard)]))
        return row !== undefined
      }),
    oldestWaitingMs: () => table.oldestWaitingMs(),
    async counts() {
      const counts = await table.counts()
      return { pending: counts.get('pending') ?? 0, running: counts.get('running') ?? 0, dead: counts.get('dead') ?? 0 }
    },
  }
}

export function ownedInbox(db: Database, shards: ShardRange | null): Pick<OwnedInboxStore, 'waiting'> {
  const table = createDeliveryTable<InboxColumns>(db, TABLE)
  return {
    async waiting(options) {
      return (await table.waiting(options, shards)).map((row) => toWaiting(db, row))
    },
  }
}

/** Reads the unfinished messages of the sessions of these messages, oldest first. */
export const messagesBeside = async (db: Database, numbers: readonly number[]): Promise<WaitingMessage[]> =>
  (await db.all<InboxColumns>(BESIDE, numbers)).map((row) => toWaiting(db, row))

const toWaiting = (
  { serverClock }: Database,
  { number, channel, account, sender, session, next_at, state, attempts, kind, received_at, replayed_at }: InboxColumns,
): WaitingMessage & WaitingSince => ({
  number,
  channel,
  account,
  sender,
  lane: session,
  atMs: next_at === null ? 0 : serverClock.toLocal(next_at),
  interruptions: state === 'running' ? attempts : 0,
  sinceMs: replayed_at ?? received_at,
  ...(kind !== null && { kind }),
})
