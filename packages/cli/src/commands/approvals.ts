/** `sluice approvals`: what people are asked, decided here as well as anywhere; a running daemon notices within a second. */
import { APPROVAL_STATES, decidedBefore, FEEDBACK_CHARS_MAX, shownApproval, unknownApproval } from '@sluice/approvals'
import { AppError, type Approval, type ApprovalKey, type ApprovalState, oneLine, type Store } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import { printBlock, printFields, time } from '../deliveries/show.ts'
import { NAME_CHARS_MAX, TEXT_CHARS_MAX } from '../deliveries/widths.ts'
import { findByBeginning } from '../find-by-beginning.ts'
import { operator } from '../operator.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'

const LIMIT = 50
const LIMIT_MAX = 500

export const list = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json, options } = context
    const state = typeof options.state === 'string' ? stateOf(options.state) : undefined
    const limit = typeof options.limit === 'string' ? wholeNumber('--limit', options.limit, 1, LIMIT_MAX) : LIMIT
    const found = await store.approvals.list({ limit: limit + 1, ...(state && { state }) })
    const approvals = found.slice(0, limit)
    if (json) out.json(approvals.map(shownApproval))
    else if (approvals.length === 0) out.print(state ? `nothing is ${state}` : 'nobody was asked anything')
    else out.table(['created', 'run', 'step', 'workflow', 'title', 'state', 'by'], approvals.map(cells))
    if (found.length > limit) out.warn(`there are older ones: raise --limit, at most ${LIMIT_MAX}`)
    return 0
  })

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const key = await findKey(context, store)
    const approval = await store.approvals.get(key)
    if (!approval) throw unknownApproval(key)
    if (context.json) context.out.json(shownApproval(approval))
    else print(context.out, approval)
    return 0
  })

export const approve = (context: CliContext): Promise<number> => decide(context, 'approved')
export const reject = (context: CliContext): Promise<number> => decide(context, 'rejected')

const decide = (context: CliContext, state: 'approved' | 'rejected'): Promise<number> =>
  withStore(context, async ({ store, clock }) => {
    const { out, json, args } = context
    const key = await findKey(context, store)
    const feedback = args[2]?.trim() || null
    if (feedback !== null && feedback.length > FEEDBACK_CHARS_MAX)
      throw new AppError('invalid_request', `the feedback is longer than ${FEEDBACK_CHARS_MAX} characters`)
    const decided = await store.approvals.decide(key, { state, by: operator(), feedback, atMs: clock.nowMs() })
    if (!decided) throw unknownApproval(key)
    if (!decided.won) throw decidedBefore(decided.approval)
    if (json) out.json(shownApproval(decided.approval))
    else out.print(`${state} ${oneLine(key.runId, TEXT_CHARS_MAX)} ${oneLine(key.stepId, TEXT_CHARS_MAX)}`)
    return 0
  })

/** The approval of the step whose run has the id, or is the only one among the newest whose id begins with it. */
async function findKey({ args: [runId = '', stepId = ''] }: CliContext, { approvals }: Pick<Store, 'approvals'>): Promise<ApprovalKey> {
  if (await approvals.get({ runId, stepId })) return { runId, stepId }
  const ofStep = (await approvals.list({ limit: LIMIT_MAX })).filter((approval) => approval.stepId === stepId)
  return { runId: findByBeginning(runId, ofStep, (approval) => approval.runId, 'runs')?.runId ?? runId, stepId }
}

function stateOf(text: string): ApprovalState {
  const state = APPROVAL_STATES.find((known) => known === text)
  if (!state) throw new AppError('invalid_request', `--state wants one of ${APPROVAL_STATES.join(', ')}, not '${text}'`)
  return state
}

const cells = ({ createdAtMs, runId, stepId, workflow, title, state, by }: Approval): string[] => [
  new Date(createdAtMs).toISOString(),
  oneLine(runId, TEXT_CHARS_MAX),
  oneLine(stepId, TEXT_CHARS_MAX),
  oneLine(workflow, NAME_CHARS_MAX),
  oneLine(title, TEXT_CHARS_MAX),
  state,
  oneLine(by ?? '', NAME_CHARS_MAX),
]

function print(out: Output, approval: Approval): void {
  printFields(out, {
    run: approval.runId,
    step: approval.stepId,
    'who waits': approval.gate,
    workflow: approval.workflow,
    title: approval.title,
    'call sha256': approval.callHash,
    state: approval.state,
    by: approval.by,
    feedback: approval.feedback,
    created: time(approval.createdAtMs),
    expires: approval.expiresAtMs === null ? 'never' : time(approval.expiresAtMs),
    decided: time(approval.decidedAtMs),
    taken: time(approval.settledAtMs),
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
