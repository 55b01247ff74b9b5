/** Approvals: questions to people, each decided once, even when several processes decide at the same time. */
import { AppError, type Approval, type ApprovalKey, type ApprovalStore, type NewApproval, type NewReply } from '@sluice/sdk'
import { APPROVAL_COLUMNS, type ApprovalColumns, approvalValues, PROMPT_COLUMNS, type PromptColumns, toApproval } from './approval-row.ts'
import { all, type ColdDatabase, conditionsOf, type Dialect, first, type Steps, statement } from './cold-database.ts'

const ADD_PROMPT = 'INSERT INTO approval_prompts (outbox, approval, channel, account, to_json) VALUES ($1, $2, $3, $4, $5)'
const DECIDE = `
  UPDATE approvals SET state = $1, decided_by = $2, decided_standing = $3, feedback = $4, decided_at = $5
  WHERE run_id = $6 AND step_id = $7 AND state = 'pending' RETURNING number`
/** Expires an approval at its time, even if no process has noticed yet. */
const EXPIRE = `
  UPDATE approvals SET state = 'expired', decided_by = 'timeout', decided_at = $1
  WHERE run_id = $2 AND step_id = $3 AND state = 'pending' AND expires_at <= $1`
const SETTLE = `
  UPDATE approvals SET settled_at = $1 WHERE run_id = $2 AND step_id = $3 AND state <> 'pending' AND settled_at IS NULL RETURNING number`
const GET = `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE run_id = $1 AND step_id = $2`
const BY_TOKEN = `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE token = $1`
const NUMBER = 'SELECT number FROM approvals WHERE run_id = $1 AND step_id = $2'
const PENDING = "SELECT count(*) AS count FROM approvals WHERE state = 'pending'"

/** The approval store of the port. */
export function createApprovals(db: ColdDatabase): ApprovalStore {
  const { dialect } = db
  return {
    open: (asked, prompts) =>
      db.transaction(function* () {
        const opened = yield* open(dialect, asked, prompts)
        const approval = yield* find(dialect, GET, asked.runId, asked.stepId)
        if (!approval) throw new AppError('internal', 'An approval that was just opened cannot be read.')
        return { opened, approval }
      }),
    decide: ({ runId, stepId }, { state, by, standing = null, feedback, atMs }, inbox) =>
      db.transaction(function* () {
        if (state === 'approved' || state === 'rejected') yield* all(EXPIRE, atMs, runId, stepId)
        const won = (yield* first(DECIDE, state, by, standing, feedback, atMs, runId, stepId)) !== undefined
        const approval = yield* find(dialect, GET, runId, stepId)
        if (!approval) return undefined
        if (won && inbox !== undefined) yield* dialect.endMessage(inbox, atMs)
        return { won, approval }
      }),
    acknowledge: ({ runId, stepId }, atMs, replies) =>
      db.transaction(function* () {
        return (yield* first(SETTLE, atMs, runId, stepId)) ? yield* dialect.queueReplies(replies) : []
      }),
    get: ({ runId, stepId }) => db.read(() => find(dialect, GET, runId, stepId)),
    byToken: (token) => db.read(() => find(dialect, BY_TOKEN, token)),
    async list({ limit, state, owner, runId, before }) {
      const end = before ? await db.read(() => numberOf(before)) : Number.MAX_SAFE_INTEGER
      if (end === undefined) return []
      const named = conditionsOf({ state, owner, run_id: runId }, 3)
      const conditions = [...named.conditions, 'number < $1'].join(' AND ')
      const text = `SELECT ${APPROVAL_COLUMNS} FROM approvals WHERE ${conditions} ORDER BY number DESC LIMIT $2`
      const rows = await db.all<ApprovalColumns>(text, end, limit, ...named.values)
      return db.read(() => withPrompts(dialect, rows))
    },
    counts: async () => ({ pending: (await db.get<{ count: number }>(PENDING))?.count ?? 0 }),
  }
}

/** Returns the place of an approval in lists; undefined for an unknown one. */
export function* numberOf({ runId, stepId }: ApprovalKey): Steps<number | undefined> {
  return (yield* first<{ number: number }>(NUMBER, runId, stepId))?.number
}

function* find(dialect: Dialect, text: string, ...values: readonly string[]): Steps<Approval | undefined> {
  const row = yield* first<ApprovalColumns>(text, ...values)
  return row && (yield* withPrompts(dialect, [row]))[0]
}

/** Returns the approvals of these rows. */
export function* withPrompts({ among }: Dialect, rows: readonly ApprovalColumns[]): Steps<Approval[]> {
  if (rows.length === 0) return []
  const PROMPTS = `SELECT approval, ${PROMPT_COLUMNS} FROM approval_prompts WHERE ${among('approval', '$1', 'bigint')}`
  const numbers = rows.map(({ number }) => number)
  const prompts = Map.groupBy(
    (yield* all<PromptColumns & { approval: number }>(PROMPTS, numbers)).toSorted((a, b) => a.outbox - b.outbox),
    ({ approval }) => approval,
  )
  return rows.map((row) => toApproval(row, prompts.get(row.number) ?? []))
}

/** Opens the approval and queues its prompts. Returns false when the approval exists already. */
function* open({ approvals, queueReplies }: Dialect, asked: NewApproval, prompts: readonly NewReply[]): Steps<boolean> {
  const values = approvalValues(asked)
  const OPEN = `
    INSERT INTO approvals (
      run_id, step_id, gate, workflow, title, message, call_hash, owner, person, decider, standing, sources_json,
      approve_json, reject_json, created_at, expires_at, token${approvals ? `, ${approvals.column}` : ''}
    ) VALUES (${values.map((_, at) => `$${at + 1}`).join(', ')}${approvals ? `, ${approvals.sql(`$${values.length + 1}`)}` : ''})
    ON CONFLICT DO NOTHING RETURNING number`
  const opened = yield* first<{ number: number }>(OPEN, ...values, ...(approvals ? [approvals.read(asked)] : []))
  if (!opened) return false
  const numbers = yield* queueReplies(prompts)
  yield prompts.map(({ channel, account, to }, at) =>
    statement(ADD_PROMPT, numbers[at] as number, opened.number, channel, account, JSON.stringify(to)),
  )
  return true
}
