/** `sluice approvals`: lists and decides approval requests. A running daemon notices a decision within a second. */
import { APPROVAL_STATES, decidedBefore, FEEDBACK_CHARS_MAX, shownApproval, unknownApproval } from '@sluice/approvals'
import { AppError, type Approval, type ApprovalKey, type ApprovalState, type ApprovalStore, oneLine } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import { findByPrefix } from '../find-by-prefix.ts'
import { operator } from '../operator.ts'
import { LIMIT_MAX, limitOption } from '../option-values.ts'
import { formatTime, NAME_CHARS_MAX, printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'
import { withStore } from '../with-store.ts'

export const list = (context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json, options } = context
    const state = typeof options.state === 'string' ? parseState(options.state) : undefined
    const limit = limitOption(context)
    const found = await store.approvals.list({ limit: limit + 1, ...(state && { state }) })
    const approvals = found.slice(0, limit)
    if (json) out.json(approvals.map(shownApproval))
    else if (approvals.length === 0) out.print(state ? `no approval is ${state}` : 'no approvals')
    else out.table(['created', 'run', 'step', 'workflow', 'title', 'state', 'by'], approvals.map(tableRow))
    if (found.length > limit) out.warn(`there are older approvals: raise --limit, at most ${LIMIT_MAX}`)
    return 0
  })

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async ({ approvals }) => {
    const key = await findKey(context, approvals)
    const approval = await approvals.get(key)
    if (!approval) throw unknownApproval(key)
    if (context.json) context.out.json(shownApproval(approval))
    else printApproval(context.out, approval)
    return 0
  })

export const approve = (context: CliContext): Promise<number> => decide(context, 'approved')
export const reject = (context: CliContext): Promise<number> => decide(context, 'rejected')

const decide = (context: CliContext, state: 'approved' | 'rejected'): Promise<number> =>
  withStore(context, async ({ approvals }, clock) => {
    const { out, json, args } = context
    const key = await findKey(context, approvals)
    const feedback = args[2]?.trim() || null
    if (feedback !== null && feedback.length > FEEDBACK_CHARS_MAX)
      throw new AppError('invalid_request', `the feedback is longer than ${FEEDBACK_CHARS_MAX} characters`)
    const decided = await approvals.decide(key, { state, by: operator(), feedback, atMs: clock.nowMs() })
    if (!decided) throw unknownApproval(key)
    if (!decided.won) throw decidedBefore(decided.approval)
    if (json) out.json(shownApproval(decided.approval))
    else out.print(`${state} ${oneLine(key.runId, TEXT_CHARS_MAX)} ${oneLine(key.stepId, TEXT_CHARS_MAX)}`)
    return 0
  })

/** Finds the approval of a step by the id of its run, or by a prefix that no other recent run with this step shares. */
async function findKey({ args: [runId = '', stepId = ''] }: CliContext, approvals: ApprovalStore): Promise<ApprovalKey> {
  if (await approvals.get({ runId, stepId })) return { runId, stepId }
  const ofStep = (await approvals.list({ limit: LIMIT_MAX })).filter((approval) => approval.stepId === stepId)
  return { runId: findByPrefix(runId, ofStep, (approval) => approval.runId, 'runs')?.runId ?? runId, stepId }
}

function parseState(text: string): ApprovalState {
  const state = APPROVAL_STATES.find((known) => known === text)
  if (!state) throw new AppError('invalid_request', `--state wants one of ${APPROVAL_STATES.join(', ')}, not '${text}'`)
  return state
}

const tableRow = ({ createdAtMs, runId, stepId, workflow, title, state, by }: Approval): string[] => [
  new Date(createdAtMs).toISOString(),
  oneLine(runId, TEXT_CHARS_MAX),
  oneLine(stepId, TEXT_CHARS_MAX),
  oneLine(workflow, NAME_CHARS_MAX),
  oneLine(title, TEXT_CHARS_MAX),
  state,
  oneLine(by ?? '', NAME_CHARS_MAX),
]

function printApproval(out: Output, approval: Approval): void {
  printFields(out, {
    run: approval.runId,
    step: approval.stepId,
    gate: approval.gate,
    workflow: approval.workflow,
    title: approval.title,
    'call sha256': approval.callHash,
    state: approval.state,
    by: approval.by,
    feedback: approval.feedback,
    created: formatTime(approval.createdAtMs),
    expires: approval.expiresAtMs === null ? 'never' : formatTime(approval.expiresAtMs),
    decided: formatTime(approval.decidedAtMs),
    dispatched: formatTime(approval.acknowledgedAtMs),
    approve: approval.approveKeywords.join(', '),
    reject: approval.rejectKeywords.join(', '),
  })
  if (approval.message !== '') printBlock(out, 'message', approval.message)
  if (approval.prompts.length === 0) return
  out.print('')
  out.table(
    ['reply', 'channel', 'to', 'provider id'],
    approval.prompts.map(({ number, channel, to, providerId }) => [
      String(number),
      channel,
      oneLine(to.to, NAME_CHARS_MAX),
      oneLine(providerId ?? 'not sent yet', NAME_CHARS_MAX),
    ]),
  )
}
