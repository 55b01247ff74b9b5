/** Outbox messages, from the queue to the platform's answer. */
import { INTERRUPTED_SEND, type OutboxRow, type OutboxStore, type OwnedOutboxStore, replyLane, type ShardRange } from '@sluice/sdk'
import {
  ASKS,
  appendAudit,
  discardRecord,
  type OutboxColumns,
  type StartedColumns,
  toOutboxRow,
  toStartedReply,
} from '@sluice/store/shared'
import { sql } from '../connection/connection.ts'
import { columnsOf, type Database, isOpen } from '../connection/database.ts'
import type { Kind } from '../connection/group-commit.ts'
import { runSteps } from '../connection/run-steps.ts'
import { HOLDINGS } from './admissions.ts'
import { createDeliveryTable, type TableDescription } from './delivery-table.ts'
import { AUDIT } from './dialect.ts'
import { insertReplies, newsValues, numbersOf, QUEUE_NEWS, valuesOf } from './replies.ts'

const COLUMNS =
  'number, channel, account, to_json, text, part, parts, client_id, inbox, turn_id, state, attempts, created_at, next_at, ended_at, provider_id, error, extras_json, trace, replayed_at, repeated'
const TABLE: TableDescription = {
  name: 'outbox',
  columns: COLUMNS,
  final: 'sent',
  marked: ['ambiguous', 'dead', 'discarded'],
  sinceColumn: 'created_at',
  waiting: "state <> 'sending'",
}

/** This text also distinguishes the parts that died with an earlier part from the parts that failed themselves. */
const EARLIER_PART = 'An earlier part of the message was not sent.'

const ADD = `${insertReplies(1, 'NULL::bigint', '')} RETURNING number`
const START = `
  UPDATE outbox SET state = 'sending', attempts = attempts + 1, next_at = NULL
  WHERE number = ANY ($1::bigint[]) AND ${isOpen()} AND state IN ('queued', 'failed') RETURNING ${COLUMNS}, ${ASKS} AS asks`
export const STARTED = `SELECT ${COLUMNS}, ${ASKS} AS asks FROM outbox WHERE number = ANY ($1::bigint[]) AND state = 'sending'`
// Replies to the prompt of an approval quote it by this id.
const SENT = `
  WITH answer AS (SELECT * FROM unnest($1::bigint[], $2::text[], $3::float8[]) AS answer (sent, provider_id, at)),
    sent AS (
      UPDATE outbox SET state = 'sent', provider_id = answer.provider_id, ended_at = answer.at, next_at = NULL, error = NULL
      FROM answer WHERE number = answer.sent AND ${isOpen()} RETURNING number, outbox.provider_id)
  UPDATE approval_prompts SET provider_id = sent.provider_id FROM sent WHERE outbox = sent.number`
const RETRY = `
  UPDATE outbox SET state = 'failed', error = $2, next_at = $3, attempts = attempts - $4, repeated = repeated OR $5 WHERE number = $1 AND ended_at IS NULL`
const GIVE_UP = `
  WITH part AS (
    UPDATE outbox SET state = $2, marked = $2, error = $3, ended_at = $4, next_at = NULL WHERE number = $1 AND ended_at IS NULL
    RETURNING reply, part)
  UPDATE outbox SET state = 'dead', marked = 'dead', error = '${EARLIER_PART}', ended_at = $4, next_at = NULL
  FROM part WHERE $2 = 'dead' AND outbox.reply = part.reply AND outbox.part > part.part AND state IN ('queued', 'failed')`
const UNDELIVERED = `
  UPDATE outbox SET state = 'dead', marked = 'dead', error = $3, ended_at = $4
  WHERE provider_id = $2 AND channel = $1 AND state = 'sent' RETURNING number`
const SENT_AS = `
  SELECT ${COLUMNS} FROM outbox WHERE provider_id = $2 AND channel = $1 AND state = 'sent' ORDER BY number DESC LIMIT $3`
const REPLAY = `
  WITH again AS (
      UPDATE outbox SET state = 'queued', marked = NULL, attempts = 0, error = NULL, ended_at = NULL, replayed_at = $2
      WHERE number = $1 AND marked IS NOT NULL AND (text <> '' OR extras_json IS NOT NULL)
      RETURNING number, reply, part),
    later AS (
      UPDATE outbox SET state = 'queued', marked = NULL, attempts = 0, error = NULL, ended_at = NULL, replayed_at = $2
      FROM again WHERE outbox.reply = again.reply AND outbox.part > again.part AND outbox.state IN ('dead', 'discarded')
        AND outbox.error = '${EARLIER_PART}')
  SELECT number FROM again`
const DISCARD = `
  WITH given AS (
      UPDATE outbox SET state = 'discarded', marked = 'discarded' WHERE number = $1 AND marked IN ('ambiguous', 'dead')
      RETURNING number, channel, reply, part),
    later AS (
      UPDATE outbox SET state = 'discarded', marked = 'discarded'
      FROM given WHERE outbox.reply = given.reply AND outbox.part > given.part AND outbox.state = 'dead'
        AND outbox.error = '${EARLIER_PART}')
  SELECT number, channel FROM given`
const EXTRAS = 'SELECT extras_json FROM outbox WHERE number = $1 FOR UPDATE'
const SEND_INSTEAD = 'UPDATE outbox SET extras_json = $2, is_edit = false WHERE number = $1'
const REPLIES = `SELECT ${COLUMNS} FROM outbox WHERE inbox = $1 ORDER BY number`
const RECOVER = `
  WITH due AS (
      UPDATE outbox SET state = 'failed', error = '${INTERRUPTED_SEND}', next_at = $5
      WHERE ended_at IS NULL AND state = 'sending' AND shard BETWEEN $1 AND $2 AND (channel = ANY ($4::text[]) OR is_edit OR ${ASKS}))
  UPDATE outbox SET state = 'ambiguous', marked = 'ambiguous', error = '${INTERRUPTED_SEND}', ended_at = $3
  WHERE ended_at IS NULL AND state = 'sending' AND shard BETWEEN $1 AND $2 AND NOT (channel = ANY ($4::text[]) OR is_edit OR ${ASKS})
  RETURNING number`

const START_KIND: Kind<number, StartedColumns | undefined> = {
  keys: (number) => [`reply ${number}`],
  statements: (numbers) => [sql(START, numbers)],
  results(numbers, [rows = []]) {
    const started = new Map((rows as unknown as StartedColumns[]).map((row) => [row.number, row]))
    return numbers.map((number) => started.get(number))
  },
  readAgain: (numbers) => [sql(STARTED, numbers)],
}

interface Sent {
  readonly number: number
  readonly providerId: string
  readonly atMs: number
}

const SENT_KIND: Kind<Sent, void> = {
  keys: ({ number }) => [`reply ${number}`],
  statements: (sent) => [
    sql(
      SENT,
      ...columnsOf(
        sent,
        ({ number }) => number,
        ({ providerId }) => providerId,
        ({ atMs }) => atMs,
      ),
    ),
  ],
  results: (sent) => sent.map(() => undefined),
  readAgain: () => [],
}

export function createOutbox(db: Database): OutboxStore {
  const { writer, clock } = db
  const table = createDeliveryTable<OutboxColumns>(db, TABLE)
  return {
    add: async (replies) => (replies.length === 0 ? [] : numbersOf(await writer.write(sql(ADD, ...valuesOf(replies))))),
    async addNews(news) {
      const { client, cause } = news.held
      const statement = sql(QUEUE_NEWS, ...newsValues(news))
      const rows = await writer.add(HOLDINGS, { client, cause, statement })
      return rows.some(({ is_news }) => is_news === true) ? rows.flatMap((row) => (row.number as number | null) ?? []) : undefined
    },
    async start(number) {
      const row = await writer.add(START_KIND, number)
      return row && toStartedReply(row)
    },
    sent: (number, { providerId, atMs }) => writer.add(SENT_KIND, { number, providerId, atMs }),
    async retry(number, { error, atMs, uncounted, repeats = false }) {
      await writer.write(sql(RETRY, number, error, db.serverClock.fromLocal(atMs), uncounted ? 1 : 0, repeats))
    },
    async giveUp(number, { state, error, atMs }) {
      await writer.write(sql(GIVE_UP, number, state, error, atMs))
    },
    async undelivered(channel, providerId, { error, atMs }) {
      return numbersOf(await writer.write<{ number: number }>(sql(UNDELIVERED, channel, providerId, error, atMs)))[0]
    },
    sendInstead: (number) =>
      writer.transaction(async (tx) => {
        const row = await tx.get<{ extras_json: string | null }>(EXTRAS, number)
        if (!row?.extras_json) return
        const { edits: _edits, elseSend: _elseSend, ...extras } = JSON.parse(row.extras_json)
        await tx.all(SEND_INSTEAD, number, JSON.stringify(extras))
      }),
    list: async (filter) => (await table.newest(filter)).map(toOutboxRow),
    async get(number) {
      const row = await table.get(number)
      return row && toOutboxRow(row)
    },
    sentAs: async (channel, providerId, limit) => (await db.all<OutboxColumns>(SENT_AS, channel, providerId, limit)).map(toOutboxRow),
    replay: async (number) => (await writer.write(sql(REPLAY, number, clock.nowMs()))).length > 0,
    discard: (number, discard) =>
      writer.transaction(async (tx) => {
        const row = await tx.get<{ number: number; channel: string }>(DISCARD, number)
        if (row) await runSteps(tx, appendAudit(AUDIT, [discardRecord('outbox', row, discard)]))
        return row !== undefined
      }),
    oldestWaitingMs: () => table.oldestWaitingMs(),
    async counts() {
      const counts = await table.counts()
      const of = (state: string) => counts.get(state) ?? 0
      return { queued: of('queued'), sending: of('sending'), failed: of('failed'), ambiguous: of('ambiguous'), dead: of('dead') }
    },
  }
}

export function ownedOutbox(db: Database, shards: ShardRange | null): Pick<OwnedOutboxStore, 'waiting' | 'recover'> {
  const table = createDeliveryTable<OutboxColumns>(db, TABLE)
  return {
    async recover({ repeatable, atMs }) {
      if (!shards) return []
      const rows = await db.writer.write<{ number: number }>(
        sql(RECOVER, shards.from, shards.to, atMs, repeatable, db.serverClock.fromLocal(atMs)),
      )
      return numbersOf(rows).toSorted((a, b) => a - b)
    },
    async waiting(options) {
      return (await table.waiting(options, shards)).map((row) => ({
        number: row.number,
        channel: row.channel,
        account: row.account,
        lane: replyLane({ ...row, to: JSON.parse(row.to_json) }),
        atMs: row.next_at === null ? 0 : db.serverClock.toLocal(row.next_at),
        interruptions: 0,
        sinceMs: row.replayed_at ?? row.created_at,
      }))
    },
  }
}

/** Returns the replies to an inbox message. */
export const repliesTo = async (db: Database, inbox: number): Promise<OutboxRow[]> =>
  (await db.all<OutboxColumns>(REPLIES, inbox)).map(toOutboxRow)
