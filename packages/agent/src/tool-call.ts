/**
 * The one executor of tool calls, whoever the caller: find, parse, count repeats, policy, approval, run, scrub, shorten,
 * tell. Whatever goes wrong becomes an error result the model can read; only the end of the turn itself is thrown.
 */
import { AppError, type Clock, type Events, type ModelMessage, type Outcome, type Risk, type Tool, type Trace } from '@sluice/sdk'
import { type ApprovalDeps, askPerson } from './approval.ts'
import { newTrace } from './ids.ts'
import type { ToolCall } from './model-reply.ts'
import { nearest } from './nearest.ts'
import type { Registry } from './registry.ts'
import type { Repeats } from './repeats.ts'
import { shorten } from './shorten.ts'
import { parseToolInput } from './tool-input.ts'
import { refusedText, type Verdict, verdict } from './tool-policy.ts'
import type { TurnScope } from './turn-scope.ts'

export interface ToolExecutorDeps extends ApprovalDeps {
  readonly events: Events
  readonly clock: Clock
}

/** A call that is ready to run, or that has its answer already. */
export interface PreparedCall {
  readonly call: ToolCall
  /** Undefined when there is no such tool. */
  readonly tool: Tool | undefined
  readonly input: unknown
  readonly risk: Risk
  readonly verdict: Verdict
  /** Why it does not run. */
  readonly refusal: string | undefined
}

export type ToolResultPart = Extract<Extract<ModelMessage, { role: 'tool' }>['content'][number], { type: 'tool-result' }>

/** The first of these identical calls is not run any more. */
const REPEATS_REFUSED_FROM = 3

const NO_OUTPUT = '(no output)'
const FAULT = 'The tool failed by a fault of its own; the cause is in the log of the daemon.'

export class ToolExecutor {
  readonly #deps: ToolExecutorDeps

  constructor(deps: ToolExecutorDeps) {
    this.#deps = deps
  }

  /** Everything that can be said of a call before anything is done. Never throws. */
  prepare(scope: TurnScope, call: ToolCall, repeats: Repeats): PreparedCall {
    const tool = scope.registry.tools.get(call.name)
    const refuse = (refusal: string): PreparedCall => ({ call, tool, input: undefined, risk: 'read', verdict: 'refuse', refusal })
    if (!tool) return refuse(unknownTool(scope.registry, call.name))
    try {
      const parsed = parseToolInput(tool, call.input)
      if ('problem' in parsed) return refuse(parsed.problem)
      const input = parsed.value
      if (repeats.count(tool.name, parsed.raw) >= REPEATS_REFUSED_FROM) return refuse(repeated(tool.name))
      const risk = typeof tool.risk === 'function' ? tool.risk(input) : tool.risk
      const said = verdict(scope.policy, tool.name, risk)
      return { call, tool, input, risk, verdict: said, refusal: said === 'refuse' ? refusedText(tool.name) : undefined }
    } catch (error) {
      this.#deps.log.error('tool failed', { tool: tool.name, turn: scope.turn.id, error })
      return refuse(FAULT)
    }
  }

  /** Runs a prepared call to its result. Rejects only with what the turn was cancelled for. */
  async run(scope: TurnScope, prepared: PreparedCall): Promise<ToolResultPart> {
    const { events, clock } = this.#deps
    const { turn } = scope
    const { call, tool } = prepared
    const about = { turn_id: turn.id, session_id: turn.session, tool: tool?.name ?? 'unknown' } as const
    const trace = newTrace(scope.trace)
    const startMs = clock.nowMs()
    const startedAtMs = clock.monotonicMs()
    turn.tell?.({ type: 'tool_call', id: call.id, name: call.name, input: prepared.input ?? call.input })
    events.emit({ type: 'tool_started', ...about })
    const ended = (outcome: Outcome) => {
      const tookMs = clock.monotonicMs() - startedAtMs
      events.emit({ type: 'tool_completed', ...about, outcome: outcome === 'ok' ? 'ok' : 'error', took_ms: Math.round(tookMs) })
      scope.registry.observe({ kind: 'tool_call', tool: about.tool, outcome, span: { trace, startMs, tookMs } })
    }
    try {
      const { outcome, output } = await this.#answer(scope, prepared, trace)
      ended(outcome)
      turn.tell?.({ type: 'tool_result', id: call.id, name: call.name, output, outcome })
      return {
        type: 'tool-result',
        toolCallId: call.id,
        toolName: call.name,
        output: { type: outcome === 'ok' ? 'text' : 'error-text', value: output },
      }
    } catch (error) {
      ended('aborted')
      throw error
    }
  }

  async #answer(scope: TurnScope, prepared: PreparedCall, trace: Trace): Promise<{ outcome: 'ok' | 'error'; output: string }> {
    const { turn } = scope
    const { tool, input } = prepared
    const clean = (text: string) => shorten(this.#deps.scrub(text), scope.agent.max_tool_result_chars) || NO_OUTPUT
    const refusal = prepared.refusal ?? (tool && prepared.verdict === 'ask' ? await askPerson(this.#deps, scope, tool, input) : undefined)
    if (!tool || refusal !== undefined) return { outcome: 'error', output: clean(refusal ?? '') }
    turn.cancellation.throwIfCancelled()
    const { client, session, cancellation } = turn
    try {
      const running = tool.run(input, { client, session, turn: turn.id, signal: cancellation.signal, trace })
      return { outcome: 'ok', output: clean(await cancellation.race(running)) }
    } catch (error) {
      cancellation.throwIfCancelled()
      if (error instanceof AppError) return { outcome: 'error', output: clean(error.message) }
      this.#deps.log.error('tool failed', { tool: tool.name, turn: turn.id, error })
      return { outcome: 'error', output: FAULT }
    }
  }
}

function unknownTool(registry: Registry, name: string): string {
  const names = registry.offered.map((tool) => tool.name)
  const near = nearest(name, names)
  if (near.length > 0) return `There is no tool "${name}". Close to it: ${near.join(', ')}.`
  return `There is no tool "${name}". ${names.length > 0 ? `There are: ${names.join(', ')}.` : 'There are none here.'}`
}

const repeated = (tool: string): string =>
  `Not run: this turn has called ${tool} with exactly this input ${REPEATS_REFUSED_FROM - 1} times. Use what it returned, or do something else.`
