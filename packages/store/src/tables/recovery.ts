/** What only the holder of a lease may do: find and recover the work that an earlier holder left in the shards of the lease. */
import {
  ALL_SHARDS,
  INTERRUPTED_SEND,
  type ModelMessage,
  type OwnedAdmissionStore,
  type OwnedApprovalStore,
  type OwnedInboxStore,
  type OwnedOutboxStore,
  type OwnedSopStore,
  type OwnedTurnStore,
  replyLane,
  type ShardRange,
  type TurnRow,
} from '@sluice/sdk'
import { APPROVAL_COLUMNS, type ApprovalColumns } from '../cold/approval-row.ts'
import { numberOf, withPrompts } from '../cold/approvals.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { runSteps } from '../connection/run-steps.ts'
import { createDeliveryTable } from './delivery-table.ts'
import { DIALECT } from './dialect.ts'
import { INBOX_TABLE, type InboxColumns } from './inbox-row.ts'
import { ASKS, OUTBOX_TABLE, type OutboxColumns } from './outbox-row.ts'
import { COLUMNS as TURN_COLUMNS, type TurnColumns, toTurn } from './turn-row.ts'

/**
 * Returns the condition that a row is in the shards; `shard` is the SQL of its shard. All shards need no condition, so that the
 * holder of all reads no row to find out about it.
 */
const within = (shards: ShardRange | null, shard: string): string => {
  if (shards === null) return ' AND FALSE'
  const isAll = shards.from === ALL_SHARDS.from && shards.to === ALL_SHARDS.to
  return isAll ? '' : ` AND ${shard} BETWEEN ${shards.from} AND ${shards.to}`
}

export function recoverInbox(db: Database, shards: ShardRange | null): Pick<OwnedInboxStore, 'waiting'> {
  const table = createDeliveryTable<InboxColumns>(db, INBOX_TABLE)
  const condition = within(shards, 'shard_of_session(session)')
  return {
    async waiting(options) {
      return table
        .waiting(options, condition)
        .map(({ number, channel, account, sender, session, next_at, state, attempts, kind, ...row }) => ({
          number,
          channel,
          account,
          sender,
          lane: session,
          atMs: next_at ?? 0,
          interruptions: state === 'running' ? attempts : 0,
          sinceMs: row.replayed_at ?? row.received_at,
          ...(kind !== null && { kind }),
        }))
    },
  }
}

export function recoverOutbox(db: Database, writer: Writer, shards: ShardRange | null): Pick<OwnedOutboxStore, 'waiting' | 'recover'> {
  const table = createDeliveryTable<OutboxColumns>(db, OUTBOX_TABLE)
  const condition = within(shards, 'shard_of_conversation(channel, account, to_json)')
  // The condition `state <> 'sent'` is redundant, but makes SQLite use the partial index.
  const interrupted = `state = 'sending' AND state <> 'sent'${condition}`
  const MAKE_DUE = `
    UPDATE outbox SET state = 'failed', error = '${INTERRUPTED_SEND}', next_at = ?
    WHERE ${interrupted} AND (channel IN (SELECT value FROM json_each(?)) OR extras_json ->> '$.edits' IS NOT NULL OR ${ASKS})`
  const MAKE_AMBIGUOUS = `
    UPDATE outbox SET state = 'ambiguous', error = '${INTERRUPTED_SEND}', ended_at = ? WHERE ${interrupted} RETURNING number`
  return {
    recover: ({ repeatable, atMs }) =>
      writer.write(() => {
        db.run(MAKE_DUE, atMs, JSON.stringify(repeatable))
        return db.all<{ number: number }>(MAKE_AMBIGUOUS, atMs).map(({ number }) => number)
      }),
    async waiting(options) {
      return table.waiting(options, condition).map((row) => ({
        number: row.number,
        channel: row.channel,
        account: row.account,
        lane: replyLane({ ...row, to: JSON.parse(row.to_json) }),
        atMs: row.next_at ?? 0,
        interruptions: 0,
        sinceMs: row.replayed_at ?? row.created_at,
      }))
    },
  }
}

export function recoverTurns(db: Database, shards: ShardRange | null): Pick<OwnedTurnStore, 'unfinished' | 'abortsRequested'> {
  const condition = within(shards, 'shard_of_turn(session_id, id)')
  const UNFINISHED = `
    SELECT ${TURN_COLUMNS}, checkpoint_json FROM turns AS turn
    WHERE ended_at IS NULL AND inbox IS NULL${condition} ORDER BY created_at, id LIMIT ?`
  const TO_ABORT = `SELECT id FROM turns WHERE abort_requested AND ended_at IS NULL${condition}`
  return {
    async unfinished(limit) {
      const rows = db.read(() => db.all<TurnColumns & { readonly checkpoint_json: string | null }>(UNFINISHED, limit))
      return rows.map((row): TurnRow & { checkpoint: readonly ModelMessage[] } => ({
        ...toTurn(row),
        checkpoint: JSON.parse(row.checkpoint_json ?? '[]'),
      }))
    },
    async abortsRequested() {
      return db.read(() => db.all<{ id: string }>(TO_ABORT)).map(({ id }) => id)
    },
  }
}

export function recoverAdmissions(db: Database, writer: Writer, shards: ShardRange | null): Pick<OwnedAdmissionStore, 'recover'> {
  const END = `
    UPDATE admissions SET open = 0 WHERE open${within(shards, 'shard')} AND id NOT LIKE 'inbox:%'
      AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = admissions.id AND ended_at IS NULL)
      AND id NOT IN (SELECT value FROM json_each(?))`
  return {
    async recover(running) {
      await writer.write(() => db.run(END, JSON.stringify(running)))
    },
  }
}

export function recoverApprovals(db: Database, shards: ShardRange | null): Pick<OwnedApprovalStore, 'unfinished'> {
  const turn = "CASE gate WHEN 'tool' THEN (SELECT session_id FROM turns WHERE turns.id = run_id) END"
  const condition = within(shards, `shard_of_turn(${turn}, run_id)`)
  const listOf = (more: string): string =>
    `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE settled_at IS NULL${more}${condition} AND number > ? ORDER BY number LIMIT ?`
  const UNSETTLED = listOf('')
  const UNSETTLED_DECIDED = listOf(" AND state <> 'pending'")
  return {
    async unfinished({ after, limit, decided }) {
      return db.read(() => {
        const start = after ? runSteps(db, numberOf(after)) : 0
        if (start === undefined) return []
        return runSteps(db, withPrompts(DIALECT, db.all<ApprovalColumns>(decided ? UNSETTLED_DECIDED : UNSETTLED, start, limit)))
      })
    },
  }
}

export function recoverSops(db: Database, shards: ShardRange | null): Pick<OwnedSopStore, 'unfinished'> {
  const condition = within(shards, 'shard_of_turn(NULL, id)')
  const NUMBER = 'SELECT number FROM sop_runs WHERE id = ?'
  const UNFINISHED = `
    SELECT run_json AS json FROM sop_runs WHERE ended_at IS NULL AND held_at IS NULL${condition} AND number > ? ORDER BY number LIMIT ?`
  return {
    async unfinished({ after, limit }) {
      return db.read(() => {
        const start = after === null ? 0 : db.get<{ number: number }>(NUMBER, after)?.number
        return start === undefined ? [] : db.all<{ json: string }>(UNFINISHED, start, limit).map(({ json }) => JSON.parse(json))
      })
    },
  }
}
