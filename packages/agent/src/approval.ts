/** Asks a person whether a tool call may run. They see the call as `shownCall` renders it, and decide that call alone. */
import type { Logger, Secret, Tool } from '@sluice/sdk'
import type { CallScope } from './call-scope.ts'
import { boundedCall, callHash, shownCall } from './shown-call.ts'
import { deniedText } from './tool-policy.ts'
import type { ApprovalRequest, Approver } from './turn.ts'

export interface ApprovalDeps {
  readonly log: Logger
  /** The configured values that no prompt shows. */
  readonly secrets: () => readonly Secret[]
  /** Asks where the turn's own caller cannot. */
  readonly approve: Approver | undefined
}

/** Who agreed, or why the call does not run. */
export type Answer = { readonly by: string } | { readonly refusal: string }

/** Rejects only with the end of the turn. */
export async function askPerson(
  deps: ApprovalDeps,
  scope: CallScope,
  { callId, tool, input }: { readonly callId: string; readonly tool: Tool; readonly input: unknown },
): Promise<Answer> {
  const { policy, turn, session, inbox, owner, cancellation } = scope
  const approve = scope.approve ?? deps.approve
  if (!approve) return { refusal: deniedText(policy(), tool, false) }
  try {
    const hash = callHash(tool.name, input)
    const summary = boundedCall(shownCall(input, deps.secrets()), hash)
    const request: ApprovalRequest = {
      callId,
      tool: tool.name,
      summary,
      callHash: hash,
      turn,
      session,
      inbox,
      ...(owner !== undefined && { owner }),
    }
    const answer = await scope.whileAsking(() => cancellation.race(approve(request, cancellation.signal)))
    if (answer === undefined) return { refusal: deniedText(policy(), tool, false) }
    if (answer === false || !answer.by) return { refusal: deniedText(policy(), tool, true) }
    // The input is an object that others could have changed meanwhile: what runs is what was shown.
    return callHash(tool.name, input) === hash ? answer : { refusal: deniedText(policy(), tool, true) }
  } catch (error) {
    cancellation.throwIfCancelled()
    deps.log.error('approval failed', { tool: tool.name, turn, error })
    return { refusal: deniedText(policy(), tool, false) }
  }
}
