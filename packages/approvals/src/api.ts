/** Approvals over the API: who sees and decides one, how it is shown, and how a decision is refused. */

import { isoTime } from '@sluice/kit'
import { AppError, type Approval, type ApprovalKey, DECIDERS, type Role } from '@sluice/sdk'
import * as v from 'valibot'
import { APPROVAL_STATES } from './states.ts'

export interface ApprovalCaller {
  readonly role: Role | null
  /** The device, or `local`. */
  readonly owner: string
  /** True: the caller is on the control socket and has access to every approval. */
  readonly onControlSocket: boolean
}

/** `whole`: the caller sees the approval. `outline`: the caller sees that it waits, but not the call. */
export type Access = 'whole' | 'outline' | 'none'

/** The prompt target of every operator who follows events. */
const DASHBOARD = 'dashboard'

/** True if `[approvals] channels` makes operators approvers of every tool call. */
export const operatorsSee = ({ decider }: Pick<Approval, 'decider'>, targets: readonly string[]): boolean =>
  decider === 'operator' || targets.some((target) => target.toLowerCase() === DASHBOARD)

/**
 * A tool call belongs to the device it is made for; operators see everything else, and the calls that only they decide. A device sees the
 * questions of the runs that it has started.
 */
export function accessOf(
  { gate, owner, decider }: Pick<Approval, 'gate' | 'owner' | 'decider'>,
  caller: ApprovalCaller,
  targets: readonly string[],
): Access {
  if (caller.onControlSocket) return 'whole'
  const isOperator = caller.role === 'operator'
  if (gate !== 'tool') return isOperator || (gate === 'sop' && owner === caller.owner) ? 'whole' : 'none'
  if (owner === caller.owner || (isOperator && operatorsSee({ decider }, targets))) return 'whole'
  return isOperator ? 'outline' : 'none'
}

/** The message of an outline, in place of the call. */
const OUTLINE_MESSAGE = 'The call is shown to the device that asked and to the configured approvers.'

export const outlineOf = <Shown extends Pick<Approval, 'message'>>(approval: Shown): Shown => ({ ...approval, message: OUTLINE_MESSAGE })

export const unknownApproval = ({ runId, stepId }: ApprovalKey): AppError =>
  new AppError('not_found', `There is no approval of step ${stepId} of run ${runId}`)

export const notYours = ({ decider }: Pick<Approval, 'decider'>): AppError =>
  new AppError(
    'forbidden',
    decider === 'operator'
      ? 'Only an operator decides this call: a device of that role, `sluice approvals` on this machine, or the configured approvers ([approvals] channels)'
      : 'A tool call is decided by the device that asked, by `sluice approvals` on this machine, or by the configured approvers ([approvals] channels)',
  )

/** `name` is the person who decided, as people read it. */
export const decidedBefore = ({ state, by }: Pick<Approval, 'state' | 'by'>, name: string): AppError =>
  new AppError('conflict', `It was ${state} before by ${name}`, { fields: { state, by } })

const nullableText = v.nullable(v.string())

/** The answer of `/api/approvals`, and the JSON of `sluice approvals`. */
export const approvalSchema = v.object({
  run_id: v.string(),
  step_id: v.string(),
  gate: v.pipe(
    v.picklist(['sop', 'tool', 'event']),
    v.description('The gate that waits for the decision: a procedure, a tool call, or a program that posted an event'),
  ),
  workflow_name: v.string(),
  title: v.string(),
  message: v.string(),
  call_sha256: v.pipe(
    nullableText,
    v.description('The SHA-256 of a tool call, its tool and exact input; the decision counts only for that call'),
  ),
  decider: v.pipe(
    v.nullable(v.picklist(DECIDERS)),
    v.description(
      'Who decides it besides operators: `asker`, the person of the turn; `starter`, the person who started the procedure; `operator`: no other person',
    ),
  ),
  state: v.picklist(APPROVAL_STATES),
  by: v.pipe(nullableText, v.description('`<channel>:<sender>`, `device:<id>`, `cli:<user>`, `timeout`, `system`')),
  feedback: nullableText,
  approve_keywords: v.array(v.string()),
  reject_keywords: v.array(v.string()),
  created_at: v.string(),
  expires_at: v.pipe(nullableText, v.description('null: it never expires')),
  decided_at: nullableText,
  settled_at: v.pipe(nullableText, v.description('When the gate acknowledged the decision')),
  prompts: v.pipe(
    v.array(
      v.object({
        outbox: v.number(),
        channel: v.string(),
        account: v.string(),
        to: v.string(),
        thread: nullableText,
        provider_id: nullableText,
      }),
    ),
    v.description('The messages that ask'),
  ),
})

export type ShownApproval = v.InferOutput<typeof approvalSchema>

export const shownApproval = (approval: Approval): ShownApproval => ({
  run_id: approval.runId,
  step_id: approval.stepId,
  gate: approval.gate,
  workflow_name: approval.workflow,
  title: approval.title,
  message: approval.message,
  call_sha256: approval.callHash,
  decider: approval.decider,
  state: approval.state,
  by: approval.by,
  feedback: approval.feedback,
  approve_keywords: [...approval.approveKeywords],
  reject_keywords: [...approval.rejectKeywords],
  created_at: isoTime(approval.createdAtMs),
  expires_at: isoTime(approval.expiresAtMs),
  decided_at: isoTime(approval.decidedAtMs),
  settled_at: isoTime(approval.acknowledgedAtMs),
  prompts: approval.prompts.map(({ number, channel, account, to, providerId }) => ({
    outbox: number,
    channel,
    account,
    to: to.to,
    thread: to.thread ?? null,
    provider_id: providerId,
  })),
})
