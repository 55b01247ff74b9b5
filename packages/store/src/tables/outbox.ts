/** Outbox messages, from the queue to the platform's answer. */
import type { Clock, OutboxRow, OutboxStore } from '@sluice/sdk'
import { appendAudit, discardRecord } from '../cold/audit-log.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { runSteps } from '../connection/run-steps.ts'
import { holdBack } from './admissions.ts'
import { createDeliveryTable } from './delivery-table.ts'
import { AUDIT } from './dialect.ts'
import { ASKS, OUTBOX_COLUMNS, OUTBOX_TABLE, type OutboxColumns, type StartedColumns, toOutboxRow, toStartedReply } from './outbox-row.ts'
import { prepareReplies } from './replies.ts'

/** This text also distinguishes the parts that died with an earlier part from the parts that failed themselves. */
const EARLIER_PART = 'An earlier part of the message was not sent.'

const START = `
  UPDATE outbox SET state = 'sending', attempts = attempts + 1, next_at = NULL WHERE number = ? AND state IN ('queued', 'failed')
  RETURNING ${OUTBOX_COLUMNS}, ${ASKS} AS asks`
const SENT = `
  UPDATE outbox SET state = 'sent', provider_id = ?, ended_at = ?, next_at = NULL, error = NULL WHERE number = ? AND ended_at IS NULL`
// For the prompt of an approval: replies quote it by this id.
const SENT_PROMPT = 'UPDATE approval_prompts SET provider_id = ? WHERE outbox = ?'
const RETRY = `
  UPDATE outbox SET state = 'failed', error = ?, next_at = ?, attempts = attempts - ?, repeated = max(repeated, ?) WHERE number = ? AND ended_at IS NULL`
const GIVE_UP = `
  UPDATE outbox SET state = ?, error = ?, ended_at = ?, next_at = NULL WHERE number = ? AND ended_at IS NULL
  RETURNING number, part, parts`
// The parts of one reply have consecutive numbers.
const LATER_PARTS = 'number > ?1 AND number <= ?1 + ?2'
const GIVE_UP_LATER_PARTS = `
  UPDATE outbox SET state = 'dead', error = '${EARLIER_PART}', ended_at = ?3, next_at = NULL
  WHERE ${LATER_PARTS} AND state IN ('queued', 'failed')`
const UNDELIVERED = `
  UPDATE outbox SET state = 'dead', error = ?, ended_at = ? WHERE provider_id = ? AND channel = ? AND state = 'sent' RETURNING number`
const SENT_AS = `
  SELECT ${OUTBOX_COLUMNS} FROM outbox WHERE provider_id = ? AND channel = ? AND state = 'sent' ORDER BY number DESC LIMIT ?`
const REPLAY = `
  UPDATE outbox SET state = 'queued', attempts = 0, error = NULL, ended_at = NULL, replayed_at = ?
  WHERE number = ? AND state IN ('ambiguous', 'dead', 'discarded') AND (text <> '' OR extras_json IS NOT NULL)
  RETURNING number, part, parts`
const REPLAY_LATER_PARTS = `
  UPDATE outbox SET state = 'queued', attempts = 0, error = NULL, ended_at = NULL, replayed_at = ?3
  WHERE ${LATER_PARTS} AND state IN ('dead', 'discarded') AND error = '${EARLIER_PART}'`
const DISCARD = `
  UPDATE outbox SET state = 'discarded' WHERE number = ? AND state IN ('ambiguous', 'dead') RETURNING number, part, parts, channel`
const DISCARD_LATER_PARTS = `
  UPDATE outbox SET state = 'discarded' WHERE ${LATER_PARTS} AND state = 'dead' AND error = '${EARLIER_PART}'`
const SEND_INSTEAD = `UPDATE outbox SET extras_json = json_remove(extras_json, '$.edits', '$.elseSend') WHERE number = ?`
const REPLIES = `SELECT ${OUTBOX_COLUMNS} FROM outbox WHERE inbox = ? ORDER BY number`

type Part = Pick<OutboxColumns, 'number' | 'part' | 'parts'>

export function createOutbox(db: Database, writer: Writer, clock: Clock): OutboxStore {
  const table = createDeliveryTable<OutboxColumns>(db, OUTBOX_TABLE)
  return {
    add: async (replies) => writer.write(prepareReplies(db, replies, null)),
    async addNews({ held, quietMs, notice }) {
      const queue = prepareReplies(db, notice, null)
      return writer.write(() => (holdBack(db, held, quietMs) ? queue() : undefined))
    },
    async start(number) {
      const row = await writer.write(() => db.get<StartedColumns>(START, number))
      return row && toStartedReply(row)
    },
    async sent(number, { providerId, atMs }) {
      await writer.write(() => {
        if (db.run(SENT, providerId, atMs, number) > 0) db.run(SENT_PROMPT, providerId, number)
      })
    },
    async retry(number, { error, atMs, uncounted, repeats }) {
      await writer.write(() => db.run(RETRY, error, atMs, uncounted ? 1 : 0, repeats ? 1 : 0, number))
    },
    giveUp: (number, { state, error, atMs }) =>
      writer.write(() => {
        const part = db.get<Part>(GIVE_UP, state, error, atMs, number)
        if (part && state === 'dead') db.run(GIVE_UP_LATER_PARTS, number, part.parts - part.part, atMs)
      }),
    undelivered: (channel, providerId, { error, atMs }) =>
      writer.write(() => db.get<{ number: number }>(UNDELIVERED, error, atMs, providerId, channel)?.number),
    async sendInstead(number) {
      await writer.write(() => db.run(SEND_INSTEAD, number))
    },
    list: async (filter) => (await table.newest(filter)).map(toOutboxRow),
    async get(number) {
      const row = table.get(number)
      return row && toOutboxRow(row)
    },
    sentAs: async (channel, providerId, limit) =>
      (await db.read(() => db.all<OutboxColumns>(SENT_AS, providerId, channel, limit))).map(toOutboxRow),
    replay: (number) =>
      writer.write(() => {
        const atMs = clock.nowMs()
        const part = db.get<Part>(REPLAY, atMs, number)
        if (part) db.run(REPLAY_LATER_PARTS, number, part.parts - part.part, atMs)
        return part !== undefined
      }),
    discard: (number, discard) =>
      writer.write(() => {
        const part = db.get<Part & Pick<OutboxColumns, 'channel'>>(DISCARD, number)
        if (!part) return false
        db.run(DISCARD_LATER_PARTS, number, part.parts - part.part)
        runSteps(db, appendAudit(AUDIT, [discardRecord('outbox', part, discard)]))
        return true
      }),
    oldestWaitingMs: async () => table.waiting({ after: 0, limit: 1 }, '')[0]?.created_at ?? null,
    counts: async () => outboxCounts(table.counts()),
  }
}

/** Returns the replies to an inbox message. */
export const repliesTo = (db: Database, inbox: number): OutboxRow[] => db.read(() => db.all<OutboxColumns>(REPLIES, inbox)).map(toOutboxRow)

const outboxCounts = (counts: ReadonlyMap<string, number>) => ({
  queued: counts.get('queued') ?? 0,
  sending: counts.get('sending') ?? 0,
  failed: counts.get('failed') ?? 0,
  ambiguous: counts.get('ambiguous') ?? 0,
  dead: counts.get('dead') ?? 0,
})
