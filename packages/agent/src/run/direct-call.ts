/**
 * A tool call that a client makes itself: a stored turn without a model, which consists of this one call. So its policy, approvals,
 * limits, idempotency key and recovery work as for any turn. A call with effects is written ahead and never runs twice.
 */
import { isLeaseLost, type ModelMessage } from '@sluice/sdk'
import * as v from 'valibot'
import { callHash } from '../tools/shown-call.ts'
import { INTERRUPTED } from '../tools/tool-round.ts'
import { callScopeOf } from '../turn/call-scope.ts'
import type { TurnScope } from '../turn/turn-scope.ts'
import type { LoopDeps, LoopResult } from './loop.ts'

/** The source of turns that are direct calls. */
export const DIRECT_CALL = 'call'

/** The message of such a turn, as JSON. */
const messageSchema = v.object({ tool: v.string(), input: v.record(v.string(), v.unknown()) })
export type DirectCall = v.InferOutput<typeof messageSchema>

/** The answer of such a turn, as JSON. `interrupted`: the call may or may not have taken effect, and will not be repeated. */
const answerSchema = v.object({
  outcome: v.picklist(['ok', 'error', 'interrupted']),
  output: v.string(),
  /** Data of the tool besides the text, as JSON. */
  data: v.exactOptional(v.string()),
  /** The source of the output when others may have written it. */
  untrusted: v.exactOptional(v.string()),
})
export type DirectAnswer = v.InferOutput<typeof answerSchema>

export const directCallText = (call: DirectCall): string => JSON.stringify(call)

/** Reads the message of a direct call. */
export const readDirectCall = (text: string): DirectCall => v.parse(messageSchema, JSON.parse(text))

/** Reads the answer of a direct call. */
export const readDirectAnswer = (text: string): DirectAnswer => v.parse(answerSchema, JSON.parse(text))

const CALL_ID = 'direct'
const QUESTION_DIGITS = 16

export interface DirectCallDeps extends Pick<LoopDeps, 'tools' | 'turns'> {
  /** Returns the reason for the daemon's stop; undefined while it runs. */
  readonly stopReason: () => Error | undefined
}

/**
 * Runs the call to its answer. A call that an earlier start of the turn began is not repeated. Rejects when the turn ends before the call
 * has begun, when the daemon stops and when the lease is lost.
 */
export async function runDirectCall(deps: DirectCallDeps, scope: TurnScope): Promise<LoopResult> {
  const { turn } = scope
  if (turn.checkpoint.some(({ role }) => role === 'tool')) return answer({ outcome: 'interrupted', output: INTERRUPTED.output })
  const { tool, input } = readDirectCall(turn.text)
  // No model has read anything.
  const callScope = callScopeOf(scope, () => [])
  const prepared = deps.tools.prepare(callScope, { id: CALL_ID, name: tool, input: JSON.stringify(input) })
  let hasBegun = false
  const onBegin = async (risk: string) => {
    if (risk === 'read') return
    await deps.turns.checkpoint(turn.id, begun(tool, input))
    hasBegun = true
  }
  const question = `1.1-${callHash(tool, prepared.input).slice(0, QUESTION_DIGITS)}`
  try {
    const { outcome, output, data, untrusted } = await deps.tools.run(callScope, prepared, { question, onBegin })
    return answer({ outcome, output, ...(data !== undefined && { data }), ...(untrusted !== undefined && { untrusted }) })
  } catch (error) {
    // An aborted call keeps its key, so that a repeat of the request does not run it again.
    if (!hasBegun || error === deps.stopReason() || isLeaseLost(error)) throw error
    return answer({ outcome: 'interrupted', output: INTERRUPTED.output })
  }
}

const answer = (given: DirectAnswer): LoopResult => ({ text: JSON.stringify(given), finishReason: 'stop', messages: [] })

/** The checkpoint of a call that has begun, in the form of every turn. */
const begun = (toolName: string, input: unknown): ModelMessage[] => [
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId: CALL_ID, toolName, input }] },
  {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: CALL_ID, toolName, output: { type: 'error-text', value: INTERRUPTED.output } }],
  },
]
