/**
 * Runs the calls of one reply to their results. A call with effects is written ahead, so that a turn which is interrupted anywhere
 * resumes from its checkpoint and runs no such call twice.
 */
import { fileNote, frameUntrusted, type Risk } from '@sluice/sdk'
import type { ToolCall } from '../model/model-reply.ts'
import type { CallScope } from '../turn/call-scope.ts'
import type { CallResult } from '../turn/turn.ts'
import type { Repeats } from './repeats.ts'
import { callHash } from './shown-call.ts'
import type { Judgement, PreparedCall, ToolExecutor, ToolResultPart } from './tool-call.ts'

export interface RoundDeps {
  readonly tools: ToolExecutor
  readonly scope: CallScope
  readonly repeats: Repeats
  /** The number of the round in the turn, from 1. */
  readonly round: number
  /** Stores the reply with its results so far. Absent for a turn that is not stored. */
  readonly keep: ((results: readonly ToolResultPart[]) => Promise<void>) | undefined
}

export interface ToolRound {
  /** All calls of the reply. */
  readonly calls: readonly ToolCall[]
  /** The final results from before the interruption; these calls do not run again. */
  readonly results: readonly ToolResultPart[]
}

/** The largest number of calls of one reply that run; further calls are refused. */
const CALLS_PER_REPLY_MAX = 32

const QUESTION_DIGITS = 16

/** The result of a call from right before it runs until it has ended. */
export const INTERRUPTED: CallResult = {
  outcome: 'error',
  output:
    'This call was interrupted before it ended, such as by a stop of the daemon: it may or may not have taken effect. Check before you repeat it.',
}

/**
 * Runs the calls in parallel when all of them only read. When a call has effects or needs an approval, all calls run one after
 * another in order, and each is judged right before it runs. Resolves to all results in the order of the calls.
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
      settle(call, INTERRUPTED)
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

  // A checkpoint has the input as the history shows it, so a refused call must not be judged by it again.
  for (const [at, { call }] of open.entries()) {
    const refusal = judged[at]?.refusal
    if (refusal !== undefined) settle(call, tools.refused(scope, refusal))
  }
  const rest = open.filter((_, at) => judged[at]?.refusal === undefined)
  const first = judged.find(({ refusal }) => refusal === undefined)
  // A call with effects, and one that needs an approval, writes the checkpoint itself.
  if (first && !isWeighty(first)) await keepSettled()
  for (const ready of rest) await run(ready)
  return settled()
}

const isWeighty = ({ risk, verdict, refusal }: Judgement): boolean => refusal === undefined && (risk !== 'read' || verdict === 'ask')

/**
 * Returns the key of a question. It is not the id of the call, because a model may use an id twice. The same place and the same call
 * give the same key, so that a resumed turn finds its decision, and no other call does.
 */
const questionOf = ({ call, tool, input }: PreparedCall, place: string): string =>
  `${place}-${callHash(tool?.name ?? call.name, input).slice(0, QUESTION_DIGITS)}`

/** The words of the daemon stand outside of the frame of a result. */
const withReadOn = (text: string, readOn: string | undefined): string => (readOn === undefined ? text : `${text}\n${readOn}`)

const resultPart = ({ id, name }: ToolCall, { outcome, output, readOn, untrusted, files }: CallResult): ToolResultPart => ({
  type: 'tool-result',
  toolCallId: id,
  toolName: name,
  output: {
    type: outcome === 'ok' ? 'text' : 'error-text',
    value: withReadOn(untrusted === undefined ? output : frameUntrusted(untrusted, output), readOn),
  },
  ...(files && fileNote(files)),
})
