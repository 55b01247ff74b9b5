/** Runs one tool call outside of a turn, with the same executor and policy and its own time limit. */
import { turnLimits } from '@sluice/config'
import { AppError, MAIN_AGENT } from '@sluice/sdk'
import { aborted } from '../turn/aborted.ts'
import { limitsInForce, mainSettings } from '../turn/agent-settings.ts'
import { type CallScope, DATA_CHARS_MAX, identityOf } from '../turn/call-scope.ts'
import { Cancellation } from '../turn/cancellation.ts'
import type { CallRequest, CallResult } from '../turn/turn.ts'
import type { ConductDeps } from './conduct-turn.ts'

export type RunCallDeps = Pick<ConductDeps, 'config' | 'pinRegistry' | 'deadlines' | 'tools'>

/** Rejects with `aborted`, as `onBegin` does, or with `unavailable` when a person cannot be asked now. A call that takes longer than a turn may ends with an error result. */
export async function runCall(deps: RunCallDeps, request: CallRequest): Promise<CallResult> {
  const { turn, callId, agent: name = MAIN_AGENT, client, caller, standing, trace, signal, onBegin } = request
  if (signal.aborted) throw aborted(turn)
  const { agent, workspace } = deps.config(name) ?? mainSettings(deps)
  const pin = deps.pinRegistry(name)
  const cancellation = new Cancellation()
  const abort = () => cancellation.cancel(aborted(turn))
  signal.addEventListener('abort', abort, { once: true })
  const dataCharsMax = agent.max_tool_result_chars ?? DATA_CHARS_MAX
  const { stepSecs } = turnLimits(agent, standing)
  const timedOut = new AppError(
    'upstream_timeout',
    `${request.tool} took longer than ${stepSecs} s and was aborted: it may or may not have taken effect.`,
  )
  const deadline = deps.deadlines.watch(stepSecs * 1000, () => cancellation.cancel(timedOut))
  const scope: CallScope = {
    turn,
    session: null,
    inbox: null,
    lease: undefined,
    owner: undefined,
    ...identityOf(name, client, caller),
    standing,
    trace,
    registry: pin.registry,
    limits: limitsInForce(deps, name, workspace),
    tools: undefined,
    resultLimit: { tokens: Number.POSITIVE_INFINITY, chars: dataCharsMax },
    dataCharsMax,
    cancellation,
    superseded: undefined,
    // No model has read anything.
    sources: () => [],
    shows: () => false,
    approve: undefined,
    whileAsking: async (ask) => {
      const resumeDeadline = deps.deadlines.pause(deadline)
      try {
        return await ask()
      } finally {
        resumeDeadline()
      }
    },
    tell: undefined,
  }
  try {
    const call = { id: callId, name: request.tool, input: JSON.stringify(request.input ?? {}) }
    return await deps.tools.run(scope, deps.tools.prepare(scope, call), { onBegin })
  } catch (error) {
    if (error !== timedOut) throw error
    return { outcome: 'error', output: timedOut.message }
  } finally {
    signal.removeEventListener('abort', abort)
    deps.deadlines.forget(deadline)
    pin.release()
  }
}
