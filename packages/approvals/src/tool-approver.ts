/** Asks people in chats about tool calls, by the approval registry: for turns that nobody watches. */
import type { ApprovalRequest, Approver } from '@sluice/agent'
import type { Approval, InboxStore, Question, SopRun } from '@sluice/sdk'
import { runOfSession } from '@sluice/sop/session'
import type { ApprovalRegistry } from './registry.ts'

export interface ToolApproverDeps {
  readonly approvals: ApprovalRegistry
  readonly inbox: Pick<InboxStore, 'get'>
  /** A run of a procedure; undefined for the id of anything else. */
  run(id: string): Promise<SopRun | undefined>
  timeoutSecs(): number
}

/**
 * Asks in the conversation that the turn answers, or that has set the procedure off, and in those of `[approvals] channels`;
 * where there is none, nobody.
 */
export function createToolApprover({ approvals, inbox, run, timeoutSecs }: ToolApproverDeps): Approver {
  const originOf = async (number: number): Promise<Question['origin']> => {
    const entry = await inbox.get(number)
    if (!entry?.message) return undefined
    const { channel, account, message } = entry
    return { channel, account, to: message.to, sender: message.sender }
  }
  /** A call of deterministic mode has no session, and the run in the place of a turn. */
  const runOf = async ({ session, turn }: ApprovalRequest): Promise<SopRun | undefined> => {
    const id = session === null ? turn : runOfSession(session)
    return id === undefined ? undefined : run(id)
  }
  return async (request, signal) => {
    const procedure = request.inbox === null ? await runOf(request) : undefined
    const origin = request.inbox === null ? procedure?.event.origin : await originOf(request.inbox)
    const about = origin ? { origin } : {}
    if (!approvals.isRunning || !approvals.reaches(about)) return undefined
    return askAboutTool(
      { approvals, signal },
      { ...toolQuestion(request, timeoutSecs()), ...(procedure && { ...titleOf(request, procedure), ...ownerOfRun(procedure) }), ...about },
    )
  }
}

const titleOf = ({ tool }: ApprovalRequest, { sop, step, steps }: SopRun): Pick<Question, 'title'> => ({
  title: `${sop}: step ${step} of ${steps.length}: ${tool} wants to run`,
})

/** A procedure that a device has started is a matter of this device. */
const DEVICE = 'device:'
const ownerOfRun = ({ event: { by } }: SopRun): Pick<Question, 'owner'> => (by.startsWith(DEVICE) ? { owner: by.slice(DEVICE.length) } : {})

export const toolQuestion = ({ turn, callId, tool, summary, callHash, owner }: ApprovalRequest, timeoutSecs: number): Question => ({
  runId: turn,
  stepId: callId,
  gate: 'tool',
  workflow: tool,
  title: `${tool} wants to run`,
  message: summary,
  callHash,
  ...(owner !== undefined && { owner }),
  timeoutSecs,
})

/**
 * Opens the question, or finds it, and waits for its answer. When the turn ends first the question is taken back, but not when
 * the daemon stops: then the turn asks again after the next start, and finds what was answered meanwhile.
 */
export async function askAboutTool(
  { approvals, signal, onOpen }: { approvals: ApprovalRegistry; signal: AbortSignal; onOpen?: (approval: Approval) => void },
  question: Question,
): Promise<{ readonly by: string } | false> {
  const { approval } = await openOwn(approvals, question)
  onOpen?.(approval)
  const decided = await approvals.decision(approval, signal)
  if (decided) return decided.state === 'approved' && decided.by !== null ? { by: decided.by } : false
  if (approvals.isRunning) await approvals.decide(approval, { state: 'cancelled', by: 'system' })
  return false
}

/** An answer counts for the call it was given to: under a key that stands for another call, a question of its own is opened. */
async function openOwn(approvals: ApprovalRegistry, question: Question): ReturnType<ApprovalRegistry['open']> {
  const first = await approvals.open(question)
  if (first.approval.callHash === (question.callHash ?? null)) return first
  return approvals.open({ ...question, stepId: `${question.stepId}.${question.callHash}` })
}
