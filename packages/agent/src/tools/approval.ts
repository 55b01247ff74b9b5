/** Asks a person whether a tool call may run. The person sees the call as `shownCall` renders it and decides only this call. */
import { APPROVAL_MESSAGE_CHARS_MAX, AppError, type Decider, isForOperators, type Logger, type Secret, type Tool } from '@sluice/sdk'
import { notConfigured } from '../turn/agent-settings.ts'
import type { CallScope } from '../turn/call-scope.ts'
import type { ApprovedBy, Approver, ToolApprovalRequest } from '../turn/turn.ts'
import { boundedCall, callHash, shownCall, shownText } from './shown-call.ts'
import { askedDecider, deniedText } from './tool-policy.ts'

export interface ApprovalDeps {
  readonly log: Logger
  /** Returns the configured values that prompts must not show. */
  readonly secrets: () => readonly Secret[]
  /** Asks a person when the caller of the turn cannot. */
  readonly approve: Approver | undefined
}

/** The person who approved, or the reason why the call does not run. */
export type Answer = ApprovedBy | { readonly refusal: string }

interface Question {
  readonly callId: string
  readonly tool: Tool
  readonly input: unknown
  /** The source of the untrusted text because of which a person is asked. */
  readonly untrusted: string | undefined
  /** Who decides the call by the declaration of its tool. */
  readonly decider: Decider
}

/**
 * Rejects when the turn ends, and with `unavailable` while the question cannot be stored or its answer cannot be read: no one has refused
 * anything then, and a resumed turn asks again with the same key.
 */
export async function askPerson(
  deps: ApprovalDeps,
  scope: CallScope,
  { callId, tool, input, untrusted, decider: declared }: Question,
): Promise<Answer> {
  const { agent, turn, session, inbox, owner, asksOwner, standing, cancellation } = scope
  const decider = askedDecider(declared, standing)
  const needsOperator = isForOperators(decider, standing)
  // The client of the turn is not asked what it may not decide.
  const approve = (needsOperator ? undefined : scope.approve) ?? deps.approve
  const denied = (asked: boolean): Answer => {
    const limits = scope.limits()
    return { refusal: limits ? deniedText(agent, limits.policy, tool, { asked, untrusted, needsOperator }) : notConfigured(agent) }
  }
  if (!approve) return denied(false)
  try {
    const hash = callHash(tool.name, input)
    const summary = summaryOf(tool, input, hash, deps.secrets())
    const request: ToolApprovalRequest = {
      callId,
      tool: tool.name,
      summary,
      callHash: hash,
      ...(untrusted !== undefined && { untrusted }),
      decider,
      standing,
      sources: scope.sources(),
      agent,
      turn,
      session,
      inbox,
      ...(owner !== undefined && { owner }),
      ...(asksOwner && { asksOwner }),
    }
    const answer = await scope.whileAsking(() => cancellation.race(approve(request, cancellation.signal)))
    if (answer === undefined) return denied(false)
    if (answer === false || !answer.by) return denied(true)
    // The input is an object that may have changed meanwhile. Only the call that was shown may run.
    return callHash(tool.name, input) === hash ? answer : denied(true)
  } catch (error) {
    cancellation.throwIfCancelled()
    if (error instanceof AppError && error.code === 'unavailable') throw error
    deps.log.error('approval failed', { tool: tool.name, turn, error })
    return denied(false)
  }
}

/** The longest notice of a tool below a call. */
const NOTICE_CHARS_MAX = 4000

/** The notice follows the call, so that the call cannot be taken for a part of it. */
function summaryOf(tool: Tool, input: unknown, hash: string, secrets: readonly Secret[]): string {
  const call = shownCall(input, secrets)
  const notice = shownText(tool.notice?.() ?? '', secrets)
  if (notice === '') return boundedCall(call, hash)
  const below = `\n\n${notice.length > NOTICE_CHARS_MAX ? `${notice.slice(0, NOTICE_CHARS_MAX - 1).toWellFormed()}…` : notice}`
  return `${boundedCall(call, hash, APPROVAL_MESSAGE_CHARS_MAX - below.length)}${below}`
}
