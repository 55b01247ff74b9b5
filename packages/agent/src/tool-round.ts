/**
 * The calls of one reply, run to their results. What has effects is written ahead: a turn that is cut anywhere goes on from
 * what was kept, and runs no such call a second time.
 */
import type { Risk } from '@sluice/sdk'
import type { CallScope } from './call-scope.ts'
import type { ToolCall } from './model-reply.ts'
import type { Repeats } from './repeats.ts'
import { callHash } from './shown-call.ts'
import type { Judgement, PreparedCall, ToolExecutor, ToolResultPart } from './tool-call.ts'
import type { CallResult } from './turn.ts'

export interface RoundDeps {
  readonly tools: ToolExecutor
  readonly scope: CallScope
  readonly repeats: Repeats
  /** Of the turn, from 1. */
  readonly round: number
  /** Keeps the reply with the results there are. Absent: the turn lives with its caller. */
  readonly keep: ((results: readonly ToolResultPart[]) => Promise<void>) | undefined
}

export interface ToolRound {
  /** All calls of the reply. */
  readonly calls: readonly ToolCall[]
  /** Of those that have one from before the turn was cut: final, they are not run again. */
  readonly results: readonly ToolResultPart[]
}

/** So many calls of one reply are run; the rest are told to come again. */
const CALLS_PER_REPLY_MAX = 32

const QUESTION_DIGITS = 16

/** What a call has for a result from right before it runs until it has ended. */
const CUT: CallResult = {
  outcome: 'error',
  output: 'This call was cut before it ended, as by a stop of the daemon: it may or may not have taken effect. Check before you repeat it.',
}

/**
 * Looks run side by side. As soon as one of the calls does more, or a person is asked about one, all run one after another,
 * as they were written, each judged when its turn comes. Resolves to all results, in the order of the calls.
 */
export async function runRound(deps: RoundDeps, { calls, results }: ToolRound): Promise<ToolResultPart[]> {
  const { tools, scope, repeats, round, keep } = deps
  const byId = new Map(results.map((result) => [result.toolCallId, result]))
  const settle = (call: ToolCall, result: CallResult) => void byId.set(call.id, resultPart(call, result))
  const settled = () => calls.flatMap(({ id }) => byId.get(id) ?? [])
  const keepSettled = async () => keep?.(settled())

  const prepared = calls.map((call) => tools.prepare(scope, call, repeats)) // also of one that has its result: repeats are counted in order
  const open = prepared.flatMap((ready, index): PreparedCall[] => {
    if (byId.has(ready.call.id)) return []
    return [index < CALLS_PER_REPLY_MAX ? ready : { ...ready, refusal: `Not run: a reply may call at most ${CALLS_PER_REPLY_MAX} tools.` }]
  })
  const run = async (ready: PreparedCall): Promise<void> => {
    const { call } = ready
    const writeAhead = async (risk: Risk) => {
      if (risk === 'read') return
      settle(call, CUT)
      await keepSettled()
    }
    const question = questionOf(ready, `${round}.${calls.indexOf(call) + 1}`)
    settle(call, await tools.run(scope, ready, { question, onAsk: keepSettled, onBegin: writeAhead }))
  }

  const judged = open.map((ready) => tools.judge(scope, ready))
  if (!judged.some(isWeighty)) {
    await Promise.all(open.map(run))
    return settled()
  }

  // A checkpoint holds the input as the model is told it, not as it was written: what was refused must not be judged by it again.
  for (const [at, { call }] of open.entries()) {
    const refusal = judged[at]?.refusal
    if (refusal !== undefined) settle(call, tools.refused(scope, refusal))
  }
  const rest = open.filter((_, at) => judged[at]?.refusal === undefined)
  const first = judged.find(({ refusal }) => refusal === undefined)
  // A call with an effect, and one that a person is asked about, keeps the reply itself.
  if (first && !isWeighty(first)) await keepSettled()
  for (const ready of rest) await run(ready)
  return settled()
}

const isWeighty = ({ risk, verdict, refusal }: Judgement): boolean => refusal === undefined && (risk !== 'read' || verdict === 'ask')

/**
 * Not the call's id: a model may use one twice. The same place and the same call are the same question when a turn that was
 * cut asks anew, and no answer is ever found for anything else.
 */
const questionOf = ({ call, input }: PreparedCall, place: string): string =>
  `${place}-${callHash(call.name, input).slice(0, QUESTION_DIGITS)}`

const resultPart = ({ id, name }: ToolCall, { outcome, output }: CallResult): ToolResultPart => ({
  type: 'tool-result',
  toolCallId: id,
  toolName: name,
  output: { type: outcome === 'ok' ? 'text' : 'error-text', value: output },
})
