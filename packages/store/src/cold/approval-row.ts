/** An approval and its prompts, as rows of their tables and as callers see them. */
import type { Approval, ApprovalGate, ApprovalPrompt, ApprovalState, Decider, NewApproval, Standing } from '@sluice/sdk'

export interface ApprovalColumns {
  readonly number: number
  readonly run_id: string
  readonly step_id: string
  readonly gate: ApprovalGate
  readonly workflow: string
  readonly title: string
  readonly message: string
  readonly call_hash: string | null
  readonly owner: string | null
  readonly person: string | null
  readonly decider: Decider | null
  readonly standing: Standing | null
  readonly sources_json: string | null
  readonly approve_json: string
  readonly reject_json: string
  readonly created_at: number
  readonly expires_at: number | null
  readonly token: string
  readonly state: ApprovalState
  readonly decided_by: string | null
  readonly decided_standing: Standing | null
  readonly feedback: string | null
  readonly decided_at: number | null
  readonly settled_at: number | null
}

export const APPROVAL_COLUMNS =
  'number, run_id, step_id, gate, workflow, title, message, call_hash, owner, person, decider, standing, sources_json, approve_json, reject_json, created_at, expires_at, token, state, decided_by, decided_standing, feedback, decided_at, settled_at'

/** The values of a new approval, in the order of the columns from `run_id` to `token`. */
export const approvalValues = (asked: NewApproval) =>
  [
    asked.runId,
    asked.stepId,
    asked.gate,
    asked.workflow,
    asked.title,
    asked.message,
    asked.callHash ?? null,
    asked.owner ?? null,
    asked.person ?? null,
    asked.decider ?? null,
    asked.standing ?? null,
    JSON.stringify(asked.sources ?? []),
    JSON.stringify(asked.approveKeywords),
    JSON.stringify(asked.rejectKeywords),
    asked.createdAtMs,
    asked.expiresAtMs,
    asked.token,
  ] as const

export interface PromptColumns {
  readonly outbox: number
  readonly channel: string
  readonly account: string
  readonly to_json: string
  readonly provider_id: string | null
  readonly sent_at: number | null
}

const SENT_AT = '(SELECT ended_at FROM outbox WHERE outbox.number = approval_prompts.outbox) AS sent_at'
export const PROMPT_COLUMNS = `outbox, channel, account, to_json, provider_id, ${SENT_AT}`

const toPrompt = (row: PromptColumns): ApprovalPrompt => ({
  number: row.outbox,
  channel: row.channel,
  account: row.account,
  to: JSON.parse(row.to_json),
  providerId: row.provider_id,
  sentAtMs: row.sent_at,
})

export const toApproval = (row: ApprovalColumns, prompts: readonly PromptColumns[]): Approval => ({
  runId: row.run_id,
  stepId: row.step_id,
  gate: row.gate,
  workflow: row.workflow,
  title: row.title,
  message: row.message,
  callHash: row.call_hash,
  owner: row.owner,
  person: row.person,
  decider: row.decider,
  standing: row.standing,
  sources: JSON.parse(row.sources_json ?? '[]'),
  approveKeywords: JSON.parse(row.approve_json),
  rejectKeywords: JSON.parse(row.reject_json),
  createdAtMs: row.created_at,
  expiresAtMs: row.expires_at,
  token: row.token,
  state: row.state,
  by: row.decided_by,
  byStanding: row.decided_standing,
  feedback: row.feedback,
  decidedAtMs: row.decided_at,
  acknowledgedAtMs: row.settled_at,
  prompts: prompts.map(toPrompt),
})
