/** Approvals: questions to people, each decided once, even when several processes decide at the same time. */
import {
  AppError,
  type Approval,
  type ApprovalKey,
  type ApprovalStore,
  type NewApproval,
  type NewReply,
  type OwnedApprovalStore,
  type ShardRange,
  shardOf,
} from '@sluice/sdk'
import { APPROVAL_COLUMNS, type ApprovalColumns, approvalValues, type PromptColumns, toApproval } from '@sluice/store/shared'
import { type Row, sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import type { Tx } from '../connection/group-commit.ts'
import { shardQuery } from '../connection/shard-reads.ts'
import { ENDED_WITHOUT_TURN } from './message-attempt.ts'
import { insertReplies, numbersOf, valuesOf } from './replies.ts'

// The approval of a tool call belongs to the shard of its turn.
const OPEN = `
  INSERT INTO approvals (
    run_id, step_id, gate, workflow, title, message, call_hash, owner, person, decider, standing, sources_json, approve_json, reject_json, created_at, expires_at,
    token, shard
  ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
    coalesce((SELECT shard FROM turns WHERE turns.id = $1 AND $3 = 'tool'), $18)) ON CONFLICT DO NOTHING
  RETURNING number`
const QUEUE_PROMPTS = `
  WITH queued AS (${insertReplies(2, 'NULL::bigint', '')} RETURNING number, channel, account, to_json)
  INSERT INTO approval_prompts (outbox, approval, channel, account, to_json) SELECT number, $1, channel, account, to_json FROM queued`
const DECIDE = `
  UPDATE approvals SET state = $1, decided_by = $2, decided_standing = $3, feedback = $4, decided_at = $5
  WHERE run_id = $6 AND step_id = $7 AND state = 'pending' RETURNING number`
/** Expires an approval at its time, even if no process has noticed yet. */
const EXPIRE = `
  UPDATE approvals SET state = 'expired', decided_by = 'timeout', decided_at = $1
  WHERE run_id = $2 AND step_id = $3 AND state = 'pending' AND expires_at <= $1`
const END_INBOX = `WITH ${ENDED_WITHOUT_TURN} SELECT number FROM ended`
const SETTLE = `
  WITH settled AS (
    UPDATE approvals SET settled_at = $1 WHERE run_id = $2 AND step_id = $3 AND state <> 'pending' AND settled_at IS NULL RETURNING number)
  ${insertReplies(4, 'NULL::bigint', 'WHERE EXISTS (SELECT 1 FROM settled)')} RETURNING number`
const GET = `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE run_id = $1 AND step_id = $2`
const BY_TOKEN = `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE token = $1`
const PROMPTS = `
  SELECT approval, outbox, channel, account, to_json, provider_id FROM approval_prompts WHERE approval = ANY ($1::bigint[])
  ORDER BY outbox`
const NUMBER = 'SELECT number FROM approvals WHERE run_id = $1 AND step_id = $2'
const PENDING = "SELECT count(*) AS count FROM approvals WHERE state = 'pending'"
const UNFINISHED = shardQuery(
  (shard) => `
  SELECT ${APPROVAL_COLUMNS}, shard FROM approvals
  WHERE settled_at IS NULL AND (NOT $5 OR state <> 'pending') AND ${shard} AND number > $3 ORDER BY number LIMIT $4`,
)

type Query = Pick<Tx, 'all' | 'get'>

async function withPrompts(query: Query, rows: readonly ApprovalColumns[]): Promise<Approval[]> {
  if (rows.length === 0) return []
  const numbers = rows.map(({ number }) => number)
  const prompts = Map.groupBy(await query.all<PromptColumns & { approval: number }>(PROMPTS, numbers), ({ approval }) => approval)
  return rows.map((row) => toApproval(row, prompts.get(row.number) ?? []))
}

async function find(query: Query, text: string, ...values: readonly string[]): Promise<Approval | undefined> {
  const row = await query.get<ApprovalColumns>(text, ...values)
  return row && (await withPrompts(query, [row]))[0]
}

const numberOf = async (db: Database, { runId, stepId }: ApprovalKey): Promise<number | undefined> =>
  (await db.get<{ number: number }>(NUMBER, runId, stepId))?.number

/** The approval store of the port. */
export function createApprovals(db: Database): ApprovalStore {
  const { writer } = db
  return {
    open: (asked, prompts) => {
      const values = valuesOfApproval(asked)
      return writer.transaction(async (tx) => {
        const opened = await openIn(tx, values, prompts)
        const approval = await find(tx, GET, asked.runId, asked.stepId)
        if (!approval) throw new AppError('internal', 'An approval that was just opened cannot be read.')
        return { opened, approval }
      })
    },
    decide: ({ runId, stepId }, { state, by, standing = null, feedback, atMs }, inbox) =>
      writer.transaction(async (tx) => {
        if (state === 'approved' || state === 'rejected') await tx.all(EXPIRE, atMs, runId, stepId)
        const won = (await tx.get(DECIDE, state, by, standing, feedback, atMs, runId, stepId)) !== undefined
        const approval = await find(tx, GET, runId, stepId)
        if (!approval) return undefined
        if (won && inbox !== undefined) await tx.all(END_INBOX, inbox, atMs)
        return { won, approval }
      }),
    acknowledge: async ({ runId, stepId }, atMs, replies) =>
      numbersOf(await writer.write(sql(SETTLE, atMs, runId, stepId, ...valuesOf(replies)))),
    get: ({ runId, stepId }) => find(db, GET, runId, stepId),
    byToken: (token) => find(db, BY_TOKEN, token),
    async list({ limit, state, owner, before }) {
      const end = before ? await numberOf(db, before) : Number.MAX_SAFE_INTEGER
      if (end === undefined) return []
      const given = Object.entries({ state, owner }).flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]))
      const conditions = ['number < $1', ...given.map(({ column }, at) => `${column} = $${at + 3}`)]
      const query = `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE ${conditions.join(' AND ')} ORDER BY number DESC LIMIT $2`
      return withPrompts(db, await db.all<ApprovalColumns>(query, end, limit, ...given.map(({ value }) => value)))
    },
    counts: async () => ({ pending: (await db.get<{ count: number }>(PENDING))?.count ?? 0 }),
  }
}

export function ownedApprovals(db: Database, shards: ShardRange | null): Pick<OwnedApprovalStore, 'unfinished'> {
  return {
    async unfinished({ after, limit, decided = false }) {
      const start = after ? await numberOf(db, after) : 0
      if (start === undefined || !shards) return []
      return withPrompts(db, await db.shards.all<ApprovalColumns & Row>(UNFINISHED, shards, limit, start, limit, decided))
    },
  }
}

const valuesOfApproval = (asked: NewApproval): unknown[] => [...approvalValues(asked), shardOf(asked.runId)]

/** Part of a transaction: opens the approval and queues its prompts. Returns false when the approval exists already. */
async function openIn(tx: Tx, values: readonly unknown[], prompts: readonly NewReply[]): Promise<boolean> {
  const opened = await tx.get<{ number: number }>(OPEN, ...values)
  if (!opened) return false
  if (prompts.length > 0) await tx.all(QUEUE_PROMPTS, opened.number, ...valuesOf(prompts))
  return true
}
