/** Asks people in chats about tool calls, for turns without a client that could be asked. */
import type { ApprovedBy, Approver, ToolApprovalRequest } from '@sluice/agent'
import {
  APPROVAL_MESSAGE_CHARS_MAX,
  type Approval,
  type ApprovalRequest,
  type GatewayTexts,
  gatewayText,
  type InboxStore,
  isForOperators,
  isLeaseLost,
  MAIN_AGENT,
  oneLine,
  ownerOfRun,
  type SopRun,
  sharedRoom,
  sourceOfMessage,
} from '@sluice/sdk'
import { runOfSession } from '@sluice/sop/session'
import { stillAsks } from './may-decide.ts'
import type { ApprovalRegistry } from './registry.ts'
import { UNREACHED } from './unreached.ts'

/** The sender of the message that a turn answers. */
interface Asker {
  readonly origin: NonNullable<ApprovalRequest['origin']>
  readonly name: string | undefined
}

const PERSON_CHARS_MAX = 80

export interface ToolApproverOptions {
  readonly approvals: ApprovalRegistry
  readonly inbox: Pick<InboxStore, 'get'>
  /** The run of a procedure; undefined for another id. */
  run(id: string): Promise<SopRun | undefined>
  /** Whether an operator could answer on the dashboard: a device of that role is paired, or none is needed. */
  hasOperator(): Promise<boolean>
  timeoutSecs(): number
  /** Default: the English texts. */
  texts?(): GatewayTexts
}

/**
 * The approver asks in the conversation that the turn answers or that started the procedure, and in the conversations of
 * `[approvals] channels`; a turn of a device that answers itself asks this device alone. A call that the person of the turn may not decide is asked of operators only, and so is every call of a
 * procedure that no operator has started, because its steps run as an operator. It resolves to undefined when it finds no conversation
 * and no operator to ask, also where each prompt turns out to reach no one.
 */
export function createToolApprover({ approvals, inbox, run, hasOperator, timeoutSecs, texts = () => ({}) }: ToolApproverOptions): Approver {
  const askerOf = async (number: number): Promise<Asker | undefined> => {
    const entry = await inbox.get(number)
    if (!entry?.message) return undefined
    const { channel, account, message } = entry
    return { origin: { channel, account, to: message.to, sender: message.sender }, name: message.name }
  }
  /** A call in deterministic mode has no session, and its turn is the run. */
  const runOf = async ({ session, turn }: ToolApprovalRequest): Promise<SopRun | undefined> => {
    const id = session === null ? turn : runOfSession(session)
    return id === undefined ? undefined : run(id)
  }
  return async (request, signal) => {
    const procedure = request.inbox === null ? await runOf(request) : undefined
    const asker = request.inbox === null ? undefined : await askerOf(request.inbox)
    const from = request.inbox === null ? procedure?.event.origin : asker?.origin
    const isSource = from?.sender !== undefined && request.sources.includes(sourceOfMessage(from.channel, from.sender))
    const standing = procedure ? procedure.event.standing : request.standing
    const decider = procedure && standing !== 'operator' ? 'operator' : request.decider
    const asksOperators = isSource || isForOperators(decider, standing)
    const asksDevice = request.asksOwner === true && !asksOperators
    const about = asksDevice ? { channels: [] } : from && !asksOperators ? { origin: from } : {}
    if (!approvals.isRunning) return undefined
    if (!asksDevice && !approvals.reaches(about) && !(asksOperators && (await hasOperator()))) return undefined
    return askAboutTool(
      { approvals, signal },
      {
        ...toolApprovalRequest({ ...request, decider }, timeoutSecs(), texts()),
        ...(procedure && { ...titleOf(request, procedure, texts()), ...ownedBy(procedure) }),
        ...about,
        ...(asker && 'origin' in about && sharedRoom(request.session) && { title: titleInRoom(request, asker, texts()) }),
      },
    )
  }
}

const titleOf = (request: ToolApprovalRequest, { sop, step, steps }: SopRun, texts: GatewayTexts): Pick<ApprovalRequest, 'title'> => ({
  title: gatewayText('tool_of_step_wants', texts, { procedure: sop, step, steps: steps.length, title: callTitle(request, texts) }),
})

/** Names the agent unless it is the main agent. */
const callTitle = ({ tool, agent }: Pick<ToolApprovalRequest, 'tool' | 'agent'>, texts: GatewayTexts): string =>
  agent === MAIN_AGENT ? gatewayText('tool_wants', texts, { tool }) : gatewayText('tool_of_agent_wants', texts, { tool, agent })

/** In a room, other people read a question that they do not decide. People choose their names, so the text has the id and the name. */
function titleInRoom(request: ToolApprovalRequest, { origin: { channel, sender }, name }: Asker, texts: GatewayTexts): string {
  const id = oneLine(`${channel}:${sender}`, PERSON_CHARS_MAX)
  const person = name ? `${oneLine(name, PERSON_CHARS_MAX)} (${id})` : id
  return gatewayText('tool_for_person', texts, { title: callTitle(request, texts), person })
}

/** The calls of a procedure that a device has started belong to this device. */
function ownedBy(run: SopRun): Pick<ApprovalRequest, 'owner'> {
  const owner = ownerOfRun(run)
  return owner === undefined ? {} : { owner }
}

/** The reason follows the call, so that a source cannot be taken for a part of the call before it. */
function warned(call: string, source: string, texts: GatewayTexts): string {
  const reason = `\n\n${gatewayText('untrusted_reason', texts, { source })}`
  return `${call.slice(0, APPROVAL_MESSAGE_CHARS_MAX - reason.length).toWellFormed()}${reason}`
}

export const toolApprovalRequest = (request: ToolApprovalRequest, timeoutSecs: number, texts: GatewayTexts = {}): ApprovalRequest => {
  const { turn, callId, tool, summary, callHash, session, owner, untrusted, decider, standing, sources } = request
  return {
    runId: turn,
    stepId: callId,
    gate: 'tool',
    workflow: tool,
    title: callTitle(request, texts),
    message: untrusted === undefined ? summary : warned(summary, untrusted, texts),
    callHash,
    decider,
    standing,
    sources,
    session,
    ...(owner !== undefined && { owner }),
    timeoutSecs,
  }
}

/**
 * Opens the question, or finds it, and waits for its answer. The question is withdrawn when the turn ends first, but not when the
 * daemon stops: then the turn asks again after the next start and finds an answer that was given meanwhile.
 */
export async function askAboutTool(
  { approvals, signal, onOpen }: { approvals: ApprovalRegistry; signal: AbortSignal; onOpen?: (approval: Approval) => void },
  question: ApprovalRequest,
): Promise<ApprovedBy | false | undefined> {
  const { approval } = await openOwn(approvals, question)
  onOpen?.(approval)
  const decided = await approvals.decision(approval, signal)
  if (decided?.by === 'system' && decided.feedback === UNREACHED) return undefined
  if (decided) return decided.state === 'approved' && decided.by !== null ? { by: decided.by, standing: decided.byStanding } : false
  // A turn that another node continues still waits for the answer.
  if (approvals.isRunning && !isLeaseLost(signal.reason)) await approvals.decide(approval, { state: 'cancelled', by: 'system' })
  return false
}

/**
 * An answer counts only for the call it was given to, from a person who may decide that call. If the key has an approval of another call,
 * or one that asked others, another question is opened.
 */
async function openOwn(approvals: ApprovalRegistry, question: ApprovalRequest): ReturnType<ApprovalRegistry['open']> {
  const { callHash = null, decider = 'asker' } = question
  const first = await approvals.open(question)
  const found =
    first.approval.callHash === callHash ? first : await approvals.open({ ...question, stepId: `${question.stepId}.${callHash}` })
  if (stillAsks(found.approval, decider)) return found
  return approvals.open({ ...question, stepId: `${found.approval.stepId}.${decider}` })
}
