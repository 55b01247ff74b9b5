/** Approvals: questions to people, each decided once, even when several processes decide at the same time. */
import { AppError, type Approval, type ApprovalKey, type ApprovalStore, type NewApproval, type NewReply } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { runSteps } from '../connection/run-steps.ts'
import { APPROVAL_COLUMNS, type ApprovalColumns, approvalValues, PROMPT_COLUMNS, type PromptColumns, toApproval } from './approval-row.ts'
import { endMessage } from './message-attempt.ts'
import { prepareReplies } from './replies.ts'

const OPEN = `
  INSERT INTO approvals (
    run_id, step_id, gate, workflow, title, message, call_hash, owner, person, decider, standing, sources_json,
    approve_json, reject_json, created_at, expires_at, token
  ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, step_id) DO NOTHING`
const ADD_PROMPT = 'INSERT INTO approval_prompts (outbox, approval, channel, account, to_json) VALUES (?, ?, ?, ?, ?)'
const DECIDE = `
  UPDATE approvals SET state = ?, decided_by = ?, decided_standing = ?, feedback = ?, decided_at = ?
  WHERE run_id = ? AND step_id = ? AND state = 'pending'`
/** Expires an approval at its time, even if the daemon has not noticed yet. */
const EXPIRE = `
  UPDATE approvals SET state = 'expired', decided_by = 'timeout', decided_at = ?
  WHERE run_id = ? AND step_id = ? AND state = 'pending' AND expires_at <= ?`
const SETTLE = `
  UPDATE approvals SET settled_at = ? WHERE run_id = ? AND step_id = ? AND state <> 'pending' AND settled_at IS NULL`
const GET = `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE run_id = ? AND step_id = ?`
const BY_TOKEN = `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE token = ?`
const PROMPTS = `SELECT ${PROMPT_COLUMNS} FROM approval_prompts WHERE approval = ? ORDER BY outbox`
const NUMBER = 'SELECT number FROM approvals WHERE run_id = ? AND step_id = ?'
const listOf = (conditions: readonly string[]): string =>
  `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE ${[...conditions, 'number < ?'].join(' AND ')} ORDER BY number DESC LIMIT ?`
const PROMPTS_OF = `
  SELECT approval, ${PROMPT_COLUMNS} FROM approval_prompts WHERE approval IN (SELECT value FROM json_each(?))`
const PENDING = "SELECT count(*) AS count FROM approvals WHERE state = 'pending'"

/** The reads that several queries of approvals share. */
export const createFindApproval = (db: Database) => ({
  withPrompts: (row: ApprovalColumns): Approval => toApproval(row, db.all<PromptColumns>(PROMPTS, row.number)),
  numberOf: ({ runId, stepId }: ApprovalKey): number | undefined => db.get<{ number: number }>(NUMBER, runId, stepId)?.number,
})

/** The approval store of the port. */
export function createApprovals(db: Database, writer: Writer): ApprovalStore {
  const { numberOf, withPrompts } = createFindApproval(db)
  const find = ({ runId, stepId }: ApprovalKey): Approval | undefined => {
    const row = db.get<ApprovalColumns>(GET, runId, stepId)
    return row && withPrompts(row)
  }
  return {
    async open(asked, prompts) {
      const open = prepareOpening(db, asked, prompts)
      return writer.write(() => {
        const opened = open()
        const approval = find(asked)
        if (!approval) throw new AppError('internal', 'An approval that was just opened cannot be read.')
        return { opened, approval }
      })
    },
    decide: (key, { state, by, standing = null, feedback, atMs }, inbox) =>
      writer.write(() => {
        if (state === 'approved' || state === 'rejected') db.run(EXPIRE, atMs, key.runId, key.stepId, atMs)
        const won = db.run(DECIDE, state, by, standing, feedback, atMs, key.runId, key.stepId) > 0
        const approval = find(key)
        if (!approval) return undefined
        if (won && inbox !== undefined) runSteps(db, endMessage(inbox, atMs))
        return { won, approval }
      }),
    async acknowledge({ runId, stepId }, atMs, replies) {
      const queue = prepareReplies(db, replies, null)
      return writer.write(() => (db.run(SETTLE, atMs, runId, stepId) > 0 ? queue() : []))
    },
    get: async (key) => db.read(() => find(key)),
    async byToken(token) {
      return db.read(() => {
        const row = db.get<ApprovalColumns>(BY_TOKEN, token)
        return row && withPrompts(row)
      })
    },
    async list({ limit, state, owner, before }) {
      const end = before ? db.read(() => numberOf(before)) : Number.MAX_SAFE_INTEGER
      if (end === undefined) return []
      const given = Object.entries({ state, owner }).flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]))
      const query = listOf(given.map(({ column }) => `${column} = ?`))
      const rows = await db.page<ApprovalColumns>(query, ...given.map(({ value }) => value), end, limit)
      const numbers = JSON.stringify(rows.map(({ number }) => number))
      const prompts = await db.page<PromptColumns & { approval: number }>(PROMPTS_OF, numbers)
      const byApproval = Map.groupBy(
        prompts.sort((a, b) => a.outbox - b.outbox),
        ({ approval }) => approval,
      )
      return rows.map((row) => toApproval(row, byApproval.get(row.number) ?? []))
    },
    counts: async () => ({ pending: db.read(() => db.get<{ count: number }>(PENDING))?.count ?? 0 }),
  }
}

/**
 * Builds the values outside the transaction. The returned part of a write opens the approval and queues its prompts; it returns
 * false when the approval exists already.
 */
function prepareOpening(db: Database, asked: NewApproval, prompts: readonly NewReply[]): () => boolean {
  const approval = approvalValues(asked)
  const messages = prompts.map((prompt) => ({
    queue: prepareReplies(db, [prompt], null),
    columns: [prompt.channel, prompt.account, JSON.stringify(prompt.to)],
  }))
  return () => {
    const number = db.insert(OPEN, ...approval)
    if (number === undefined) return false
    for (const { queue, columns } of messages) for (const outbox of queue()) db.run(ADD_PROMPT, outbox, number, ...columns)
    return true
  }
}
