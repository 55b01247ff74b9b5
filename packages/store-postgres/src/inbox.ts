/** Inbox messages, from their arrival to their end. The end of a turn, which also ends its message, is in `turns.ts`. */
import type { BoundedMap } from '@sluice/kit'
import type { ChangedMessage, Inbound, InboxEntry, InboxStore, MessageKind, OwnedInboxStore, ShardRange } from '@sluice/sdk'
import { edited, type InboxColumns, isBySender, joinTexts, rowKey, toInboxRow, WITHOUT_TURN } from '@sluice/store/shared'
import { holdBack } from './admissions.ts'
import { sql } from './connection.ts'
import type { Db } from './db.ts'
import { createDeliveryTable, type TableDescription } from './delivery-table.ts'
import { createKeep, createKnown } from './keep-arrival.ts'
import { createStart, END_MESSAGE, ENDED_WITHOUT_TURN } from './message-attempt.ts'
import { repliesTo } from './outbox.ts'
import { insertReplies, numbersOf, valuesOf } from './replies.ts'
import type { Tx } from './writer.ts'

const COLUMNS =
  'number, channel, account, message_id, sender, session, state, attempts, received_at, next_at, ended_at, turn_id, error, kind'
const TABLE: TableDescription = {
  name: 'inbox',
  columns: COLUMNS,
  final: 'done',
  marked: ['dead', 'limited'],
  sinceColumn: 'received_at',
  waiting: 'true',
}

const requeued = (update: string): string => `
  WITH requeued AS (${update} RETURNING turn_id, attempts)
  UPDATE turns SET status = 'queued', attempts = requeued.attempts FROM requeued
  WHERE turns.id = requeued.turn_id AND turns.ended_at IS NULL`
const RETRY = requeued(`
  UPDATE inbox SET state = 'pending', next_at = $2, error = $3, attempts = attempts - $4 WHERE number = $1 AND state = 'running'`)
const RELEASE = requeued(`UPDATE inbox SET state = 'pending', attempts = attempts - 1 WHERE number = $1 AND state = 'running'`)
const DONE = `WITH ${ENDED_WITHOUT_TURN} ${insertReplies(3, 'NULL::bigint', 'WHERE EXISTS (SELECT 1 FROM ended)')} RETURNING number`
const LIMIT = `
  UPDATE inbox SET state = 'limited', marked = 'limited', next_at = NULL, ended_at = $2, error = $3
  WHERE number = $1 AND ended_at IS NULL RETURNING number`
const QUEUE_NOTICE = `${insertReplies(2, '$1::bigint', '')} RETURNING number`
const DRAFT = 'UPDATE inbox SET draft = $2 WHERE number = $1 AND ended_at IS NULL'
const MARK_DEAD = `
  WITH dead AS (
    UPDATE inbox SET state = 'dead', marked = 'dead', next_at = NULL, ended_at = $2, error = $3 WHERE number = $1 AND ended_at IS NULL
    RETURNING turn_id)
  UPDATE turns SET status = 'failed', error_json = $4, ended_at = $2, checkpoint_json = NULL FROM dead
  WHERE turns.id = dead.turn_id AND turns.ended_at IS NULL`
const CONTENT = `
  SELECT ${COLUMNS}, verdict, message_json, trace,
    coalesce(raw, (SELECT first.raw FROM inbox AS first WHERE first.number = message.batch)) AS raw
  FROM inbox AS message WHERE number = $1`
const REPLAY = `
  UPDATE inbox SET state = 'pending', marked = NULL, attempts = 0, next_at = NULL, ended_at = NULL, turn_id = NULL, error = NULL,
    draft = NULL, replayed_at = $2, kind = CASE WHEN kind IN ('approval_reply', 'change', 'command') THEN kind END
  WHERE number = $1 AND ended_at IS NOT NULL AND message_json IS NOT NULL RETURNING number`
const OF_SESSION = `
  SELECT state, turn_id AS "turnId", received_at AS "receivedAtMs" FROM inbox WHERE ended_at IS NULL AND session = $1 ORDER BY number`

const REPORT = 'SELECT channel, account, message_json FROM inbox WHERE number = $1 AND ended_at IS NULL FOR UPDATE'
const CHANGED =
  'SELECT number, sender, session, kind, ended_at, turn_id, message_json FROM inbox WHERE key = $1 FOR UPDATE'
const REPLACE = 'UPDATE inbox SET message_json = $2 WHERE number = $1'

interface SessionColumns {
  readonly state: 'pending' | 'running'
  readonly turnId: string | null
  readonly receivedAtMs: number
}

interface Content extends InboxColumns {
  readonly verdict: string
  readonly message_json: string | null
  readonly raw: Buffer | null
  readonly trace: string | null
}

interface Changed {
  readonly number: number
  readonly sender: string
  readonly session: string
  readonly kind: MessageKind | null
  readonly ended_at: number | null
  readonly turn_id: string | null
  readonly message_json: string | null
}

/** `recent` holds the ids of recent messages; the caller clears it after pruning. */
export function createInbox(db: Db, recent: BoundedMap<string, true>): InboxStore {
  const { writer, clock } = db
  const table = createDeliveryTable<InboxColumns>(db, TABLE)
  return {
    keep: createKeep(db, recent),
    known: createKnown(db, recent),
    start: createStart(db),
    async retry(number, { error, atMs, uncounted }) {
      await writer.write(sql(RETRY, number, atMs, error, uncounted ? 1 : 0))
    },
    async release(number) {
      await writer.write(sql(RELEASE, number))
    },
    done: async (number, atMs, replies = []) => numbersOf(await writer.write(sql(DONE, number, atMs, ...valuesOf(replies)))),
    limit: (number, { error, atMs, news }) =>
      writer.transaction(async (tx) => {
        const isLimited = (await tx.get(LIMIT, number, atMs, error)) !== undefined
        const isNews = isLimited && news !== undefined && (await holdBack(tx, news.held, news.quietMs))
        const notice = isNews ? news.notice : []
        const replies = notice.length > 0 ? await tx.all<{ number: number }>(QUEUE_NOTICE, number, ...valuesOf(notice)) : []
        return { isNews, replies: numbersOf(replies) }
      }),
    async draft(number, providerId) {
      await writer.write(sql(DRAFT, number, providerId))
    },
    async markDead(number, { error, atMs }) {
      await writer.write(sql(MARK_DEAD, number, atMs, error, JSON.stringify({ code: 'internal', message: error })))
    },
    list: async (filter) => (await table.newest(filter)).map(toInboxRow),
    async get(number): Promise<InboxEntry | undefined> {
      const row = await db.get<Content>(CONTENT, number)
      if (!row) return undefined
      const message = JSON.parse(row.message_json ?? 'null')
      const raw = row.raw && new Uint8Array(row.raw)
      const trace = row.trace === null ? {} : { trace: row.trace }
      return { ...toInboxRow(row), verdict: row.verdict, raw, message, ...trace, replies: await repliesTo(db, number) }
    },
    change: (number, atMs) => writer.transaction((tx) => changeMessage(tx, number, atMs)),
    async ofSession(session) {
      const rows = await db.all<SessionColumns>(OF_SESSION, session)
      const running = rows.find((row): row is SessionColumns & { turnId: string } => row.state === 'running' && row.turnId !== null)
      const waiting = rows.length - (running ? 1 : 0)
      return { running: running && { turnId: running.turnId, receivedAtMs: running.receivedAtMs }, waiting }
    },
    replay: async (number) => (await writer.write(sql(REPLAY, number, clock.nowMs()))).length > 0,
    oldestWaitingMs: () => table.oldestWaitingMs(),
    async counts() {
      const counts = await table.counts()
      return { pending: counts.get('pending') ?? 0, running: counts.get('running') ?? 0, dead: counts.get('dead') ?? 0 }
    },
  }
}

export function ownedInbox(db: Db, shards: ShardRange | null): Pick<OwnedInboxStore, 'waiting'> {
  const table = createDeliveryTable<InboxColumns>(db, TABLE)
  return {
    async waiting(options) {
      return (await table.waiting(options, shards)).map(({ number, channel, account, session, next_at, state, attempts, kind }) => ({
        number,
        channel,
        account,
        lane: session,
        atMs: next_at ?? 0,
        interruptions: state === 'running' ? attempts : 0,
        ...(kind !== null && { kind }),
      }))
    },
  }
}

/** Part of a transaction; see `InboxStore.change`. */
async function changeMessage(tx: Tx, number: number, atMs: number): Promise<ChangedMessage> {
  const report = await tx.get<{ channel: string; account: string; message_json: string }>(REPORT, number)
  if (!report) return { outcome: 'done' }
  const change: Inbound = JSON.parse(report.message_json)
  const { changes } = change
  const key = changes && rowKey(joinTexts(report.channel, report.account, changes.message))
  const changed = key && (await tx.get<Changed>(CHANGED, key))
  if (!changed) return { outcome: 'unknown' }
  if (!changed.message_json || WITHOUT_TURN.includes(changed.kind) || !isBySender(change, changed)) return { outcome: 'refused' }
  const before: Inbound = JSON.parse(changed.message_json)
  if (changed.turn_id !== null || changed.ended_at !== null) return { outcome: 'begun', session: changed.session, text: before.text }
  if (changes?.what === 'deleted') await tx.all(END_MESSAGE, changed.number, atMs)
  else await tx.all(REPLACE, changed.number, JSON.stringify(edited(before, change)))
  await tx.all(END_MESSAGE, number, atMs)
  return { outcome: 'done' }
}
