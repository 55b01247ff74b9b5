/**
 * Executes tool calls of turns and other callers: find, parse, count repeats, policy, approval, run, scrub, shorten, report. The
 * policy judges a call right before it runs, and again after an approval, because earlier calls and the time of the approval may
 * change its effect. Every failure is an error result for the model; only the end of the turn is thrown.
 */

import { SerialQueue } from '@sluice/kit'
import {
  AppError,
  type CallingAgent,
  type Clock,
  checkHeld,
  type Decider,
  type Events,
  type FileViewer,
  isForOperators,
  type ModelMessage,
  type Outcome,
  type Risk,
  type Tool,
  type ToolContext,
  type ToolReport,
  type Trace,
  type WithinTrace,
} from '@sluice/sdk'
import { shorten } from '../history/shorten.ts'
import type { ToolCall } from '../model/model-reply.ts'
import type { ToolSpecs } from '../model/tool-specs.ts'
import { aboutTurn } from '../turn/about-turn.ts'
import { notConfigured } from '../turn/agent-settings.ts'
import { allowedTools, type CallScope, fileCallerOf, offeredTools } from '../turn/call-scope.ts'
import { newTrace } from '../turn/ids.ts'
import type { Scrub } from '../turn/scrub.ts'
import type { CallResult } from '../turn/turn.ts'
import { type ApprovalDeps, askPerson } from './approval.ts'
import { innerCall, searchTool, TOOL_CALL, TOOL_SEARCH } from './deferred-tools.ts'
import { fileShareOf, type KeepResultDeps, keepResult } from './keep-result.ts'
import type { Repeats } from './repeats.ts'
import { parseToolInput } from './tool-input.ts'
import { declaredDecider, operatorDenied, refusedText, type Verdict, verdict } from './tool-policy.ts'
import { unknownTool } from './unknown-tool.ts'

export interface ToolExecutorDeps extends ApprovalDeps, KeepResultDeps {
  readonly toolSpecs: ToolSpecs
  readonly events: Events
  readonly clock: Clock
  readonly within: WithinTrace
  readonly scrub: Scrub
}

/** A call with validated input, or with a refusal. */
export interface PreparedCall {
  readonly call: ToolCall
  /** The tool; undefined for an unknown name. */
  readonly tool: Tool | undefined
  readonly input: unknown
  /** True when the call only stops something (`Tool.haltOf`). */
  readonly halts: boolean
  /** The reason why the call does not run. */
  readonly refusal: string | undefined
}

/** The risk of a call at this moment and the verdict of the policy. */
export interface Judgement {
  readonly risk: Risk
  readonly verdict: Verdict
  /** The reason why the call does not run. */
  readonly refusal?: string
  /** The source of the untrusted text because of which a person is asked. */
  readonly untrusted?: string | undefined
  /** Who decides the call by the declaration of its tool; absent for a refused call. */
  readonly decider?: Decider
}

export type ToolResultPart = Extract<Extract<ModelMessage, { role: 'tool' }>['content'][number], { type: 'tool-result' }>

export interface RunOptions {
  /** The key of the question when a person is asked; the id of the call when absent. */
  readonly question?: string
  /** Awaited before a person is asked. A rejection prevents the run. */
  readonly onAsk?: (() => Promise<void>) | undefined
  /** Awaited right before the tool runs, after the policy and any approval. A rejection prevents the run. */
  readonly onBegin?: ((risk: Risk) => Promise<void>) | undefined
}

/** From this number of identical calls on, a call does not run. */
const REPEATS_REFUSED_FROM = 3

/** The number of questions of one call that wait at once. */
const QUESTIONS_MAX = 4

/** An answer attaches only files that are noted. */
const FILES_NOTED_MAX = 100

const NO_OUTPUT = '(no output)'
const FAULT = 'The tool failed because of an internal error. The log of the daemon has the cause.'

export class ToolExecutor {
  readonly #deps: ToolExecutorDeps

  constructor(deps: ToolExecutorDeps) {
    this.#deps = deps
  }

  /** Validates a call. Without `repeats` the call may be made any number of times. Never throws. */
  prepare(scope: CallScope, call: ToolCall, repeats?: Repeats): PreparedCall {
    // A deferred tool is judged, shown and run under its own name.
    const inner = call.name === TOOL_CALL && !scope.registry.tools.has(TOOL_CALL) ? innerCall(call.input, this.#deps.scrub) : call
    const { name, input: json } = 'problem' in inner ? call : inner
    const tool = scope.registry.tools.get(name) ?? (name === TOOL_SEARCH ? this.#search(scope) : undefined)
    const refuse = (refusal: string): PreparedCall => ({ call, tool, input: undefined, halts: false, refusal })
    if (call.isCut) return refuse(CUT_CALL)
    if ('problem' in inner) return refuse(inner.problem)
    if (!tool) return refuse(unknownTool(name, offeredTools(scope.registry, allowedTools(scope))))
    const allowed = allowedTools(scope)
    if (allowed && name !== TOOL_SEARCH && !allowed.includes(tool.name)) return refuse(notAmong(allowed, tool.name))
    try {
      const parsed = parseToolInput(tool, json, this.#deps.scrub)
      if ('problem' in parsed) return refuse(parsed.problem)
      const { value: input, halts } = parsed
      if (!halts && !tool.mayRepeat && repeats && repeats.count(tool.name, parsed.raw) >= REPEATS_REFUSED_FROM)
        return refuse(repeated(tool.name))
      return { call, tool, input, halts, refusal: undefined }
    } catch (error) {
      this.#deps.log.error('tool failed', { tool: tool.name, turn: scope.turn, error })
      return refuse(FAULT)
    }
  }

  /** Judges a prepared call at this moment. The verdict is valid only until something else runs. Never throws. */
  judge(scope: CallScope, { tool, input, halts, refusal }: PreparedCall): Judgement {
    if (!tool || refusal !== undefined) return { risk: 'read', verdict: 'refuse', refusal: refusal ?? '' }
    const refuse = (reason: string): Judgement => ({ risk: 'read', verdict: 'refuse', refusal: reason })
    const by = callingAgent(scope)
    if (!by) return refuse(notConfigured(scope.agent))
    const allowed = allowedTools(scope)
    if (allowed && tool.name !== TOOL_SEARCH && !allowed.includes(tool.name)) return refuse(notAmong(allowed, tool.name))
    try {
      const risk = typeof tool.risk === 'function' ? tool.risk(input, by) : tool.risk
      if (halts) return { risk, verdict: 'run' }
      const untrusted = asksAfterUntrusted(scope, tool, input, by, risk) ? scope.sources()[0] : undefined
      const decider = declaredDecider(tool, input, by, scope.standing)
      const needsOperator = isForOperators(decider, scope.standing)
      const asks = { alwaysAsks: alwaysAsks(tool, input, by), asksAfterUntrusted: untrusted !== undefined, needsOperator }
      const said = verdict(by.policy, { name: tool.name, ...asks }, risk)
      if (said === 'refuse') return { risk, verdict: said, refusal: refusedText(scope.agent, tool.name) }
      return { risk, verdict: said, untrusted, decider }
    } catch (error) {
      this.#deps.log.error('tool failed', { tool: tool.name, turn: scope.turn, error })
      return refuse(FAULT)
    }
  }

  /**
   * Runs a prepared call to its result. Rejects only with the reason of a cancellation, as `onBegin` does, when the lease is lost, and with
   * `unavailable` when a person cannot be asked now.
   */
  async run(scope: CallScope, prepared: PreparedCall, options: RunOptions = {}): Promise<CallResult> {
    const { events, clock } = this.#deps
    const { call, tool } = prepared
    const name = tool?.name ?? call.name
    const about = { ...aboutTurn(scope.turn, scope), tool: tool?.name ?? 'unknown' }
    const trace = newTrace(scope.trace)
    const startMs = clock.nowMs()
    const startedAtMs = clock.monotonicMs()
    scope.tell?.({ type: 'tool_call', id: call.id, name, input: prepared.input ?? call.input })
    events.emit({ type: 'tool_started', ...about }, scope.owner)
    scope.alive?.()
    const ended = (outcome: Outcome) => {
      scope.alive?.()
      const tookMs = clock.monotonicMs() - startedAtMs
      events.emit(
        { type: 'tool_completed', ...about, outcome: outcome === 'ok' ? 'ok' : 'error', took_ms: Math.round(tookMs) },
        scope.owner,
      )
      scope.registry.observe({ kind: 'tool_call', tool: about.tool, outcome, span: { trace, startMs, tookMs } })
      scope.note?.({ kind: 'tool', name, atMs: startMs, tookMs: Math.round(tookMs), outcome })
    }
    try {
      const result = await this.#answer(scope, prepared, { ...options, trace })
      ended(result.outcome)
      scope.tell?.({ type: 'tool_result', id: call.id, name, outcome: result.outcome, output: result.output })
      return result
    } catch (error) {
      ended('aborted')
      throw error
    }
  }

  #search(scope: CallScope): Tool {
    const allowed = allowedTools(scope)
    const tools = offeredTools(scope.registry, allowed)
    return searchTool(tools, async () => {
      const specs = await this.#deps.toolSpecs(scope.registry)
      return specs.filter(({ name }) => tools.some((tool) => tool.name === name))
    })
  }

  /** Returns the result of a call that does not run. */
  refused(scope: CallScope, refusal: string): CallResult {
    return { outcome: 'error', output: this.#clean(scope, refusal) }
  }

  async #answer(
    scope: CallScope,
    prepared: PreparedCall,
    { question = prepared.call.id, onAsk, onBegin, trace }: RunOptions & { readonly trace: Trace },
  ): Promise<CallResult> {
    const { tool, input } = prepared
    let judged = this.judge(scope, prepared)
    if (!tool || judged.refusal !== undefined) return this.refused(scope, judged.refusal ?? '')
    if (judged.verdict === 'ask') {
      const problem = await this.#problem(scope, tool, input)
      if (problem !== undefined) return this.refused(scope, problem)
      // The check may have waited until a sandbox was chosen.
      judged = this.judge(scope, prepared)
      if (judged.refusal !== undefined) return this.refused(scope, judged.refusal)
    }
    if (judged.verdict === 'ask') await onAsk?.()
    const answer =
      judged.verdict === 'ask'
        ? await askPerson(this.#deps, scope, {
            callId: question,
            tool,
            input,
            untrusted: judged.untrusted,
            decider: judged.decider ?? 'operator',
          })
        : undefined
    if (answer && 'refusal' in answer) return this.refused(scope, answer.refusal)
    const { client, caller, person, isInRoom, standing, session, turn, cancellation, superseded } = scope
    cancellation.throwIfCancelled()
    const { risk, refusal, decider } = answer ? this.judge(scope, prepared) : judged
    if (refusal !== undefined) return this.refused(scope, refusal)
    // The decider of the call may have changed since the person was asked.
    if (answer && isForOperators(decider, scope.standing) && answer.standing !== 'operator')
      return this.refused(scope, operatorDenied(tool.name, true))
    if (onBegin) {
      await onBegin(risk)
      cancellation.throwIfCancelled()
    }
    if (scope.lease) checkHeld(scope.lease)
    const used = new UsedByCall(risk === 'read' ? undefined : this.#deps.clock.nowMs())
    const by = callingAgent(scope, { ...used.viewer, ...fileShareOf(this.#deps, scope) })
    if (!by) return this.refused(scope, notConfigured(scope.agent))
    let source: Pick<CallResult, 'untrusted'> = {}
    let reported: ToolReport = {}
    try {
      source = sourceOf(tool, input, by)
      const report = (given: ToolReport) => {
        reported = given
      }
      const identity = { ...(caller !== undefined && { caller }), ...(person !== undefined && { person }), ...(isInRoom && { isInRoom }) }
      const who = { client, standing, ...identity, ...(answer && { approvedBy: answer.by }) }
      const ask = risk === 'read' ? undefined : this.#asker(scope, tool, { question, decider: decider ?? 'operator' })
      const context = {
        ...{ ...by, ...who, session, turn, trace, report, signal: cancellation.signal },
        ...(superseded && { superseded }),
        ...(ask && { ask }),
        ...(scope.alive && { hasReadUntrusted: () => scope.sources().length > 0 }),
      }
      const text = this.#deps.scrub(await cancellation.race(this.#deps.within(trace, () => tool.run(input, context))))
      const cut = await keepResult(this.#deps, scope, { tool: tool.name, input, text: text || NO_OUTPUT })
      const { failed, data, untrusted } = reported
      return {
        outcome: 'ok',
        ...cut,
        ...sourceOf(tool, input, by),
        ...(untrusted !== undefined && { untrusted }),
        ...source,
        ...used.noted,
        ...(failed && { failed }),
        ...(data !== undefined && { data: this.#bounded(scope, data) }),
      }
    } catch (error) {
      cancellation.throwIfCancelled()
      if (error instanceof AppError) {
        const read = reported.readNothing ? {} : { ...sourceOf(tool, input, by), ...source }
        return { ...this.refused(scope, error.message), ...read, ...used.noted }
      }
      this.#deps.log.error('tool failed', { tool: tool.name, turn, error })
      return { outcome: 'error', output: FAULT, ...used.noted }
    }
  }

  /** Returns `ToolContext.ask` of a call. Calls without effects run side by side, and the turn can wait for one question at a time. */
  #asker(
    scope: CallScope,
    tool: Tool,
    { question, decider }: { readonly question: string; readonly decider: Decider },
  ): NonNullable<ToolContext['ask']> {
    const questions = new SerialQueue({ name: 'a question of a tool', tasksMax: QUESTIONS_MAX })
    let count = 0
    return (about) =>
      questions.run(async () => {
        const callId = `${question}.${++count}`
        const answer = await askPerson(this.#deps, scope, { callId, tool, input: about, untrusted: undefined, decider })
        return 'by' in answer ? answer.by : undefined
      })
  }

  /** Resolves to the reason why the call would fail even with an approval. Rejects only when the turn ends. */
  async #problem(scope: CallScope, tool: Tool, input: unknown): Promise<string | undefined> {
    const { cancellation, turn, standing, caller } = scope
    const by = callingAgent(scope)
    if (!by) return notConfigured(scope.agent)
    const who = { standing, ...(caller !== undefined && { caller }) }
    try {
      if (tool.precheck) await cancellation.race(Promise.resolve(tool.precheck(input, { ...by, ...who, signal: cancellation.signal })))
      else if (tool.available?.() === false) return `Not run: ${tool.name} is not available, because its device or program is missing.`
      return undefined
    } catch (error) {
      cancellation.throwIfCancelled()
      if (error instanceof AppError) return error.message
      this.#deps.log.error('tool failed', { tool: tool.name, turn, error })
      return FAULT
    }
  }

  #clean(scope: CallScope, text: string): string {
    return this.#bounded(scope, text) || NO_OUTPUT
  }

  #bounded({ dataCharsMax }: CallScope, text: string): string {
    return shorten(this.#deps.scrub(text), dataCharsMax)
  }
}

/** The files that a call uses, of which the first ones are noted. */
class UsedByCall {
  readonly #paths = new Set<string>()
  readonly #sinceMs: number | undefined

  constructor(sinceMs: number | undefined) {
    this.#sinceMs = sinceMs
  }

  readonly viewer: FileViewer = {
    used: (path) => {
      if (this.#paths.size < FILES_NOTED_MAX) this.#paths.add(path)
    },
  }

  get noted(): Pick<CallResult, 'files'> {
    const files = {
      ...(this.#paths.size > 0 && { used: [...this.#paths] }),
      ...(this.#sinceMs !== undefined && { sinceMs: this.#sinceMs }),
    }
    return Object.keys(files).length > 0 ? { files } : {}
  }
}

const CUT_CALL = 'Not run: the reply ended within this call, so its input may be incomplete. Make the call again, with a shorter input.'

/** Returns the agent of the call as tools see it; undefined once it was removed from the configuration. */
function callingAgent(scope: CallScope, viewer?: FileViewer): CallingAgent | undefined {
  const now = scope.limits()
  return now && { agent: scope.agent, policy: now.policy, workspace: now.workspace.as({ ...viewer, caller: fileCallerOf(scope) }) }
}

const alwaysAsks = (tool: Tool, input: unknown, by: CallingAgent): boolean =>
  typeof tool.alwaysAsks === 'function' ? tool.alwaysAsks(input, by) : tool.alwaysAsks === true

/** Tells whether a person is asked about a call once the turn has read untrusted text. */
function asksAfterUntrusted(scope: CallScope, tool: Tool, input: unknown, by: CallingAgent, risk: Risk): boolean {
  const address = tool.address?.(input)
  return address === undefined ? by.policy.ask_after_untrusted && canHarm(tool, input, by, risk) : !scope.shows(address)
}

/** Tells whether a model that obeys untrusted text could do harm by this call. */
const canHarm = (tool: Tool, input: unknown, by: CallingAgent, risk: Risk): boolean =>
  !tool.reportsOnly && (risk !== 'read' || (typeof tool.egress === 'function' ? tool.egress(input, by) : tool.egress))

/** The source of the result, which a failed call may quote too. */
function sourceOf({ name, untrusted }: Tool, input: unknown, by: CallingAgent): Pick<CallResult, 'untrusted'> {
  const source = typeof untrusted === 'function' ? untrusted(input, by) : untrusted ? name : undefined
  return source === undefined ? {} : { untrusted: source }
}

const notAmong = (tools: readonly string[], name: string): string =>
  `Not run: ${name} may not be called here. ${tools.length > 0 ? `Allowed tools: ${tools.join(', ')}.` : 'No tool may.'}`

const repeated = (tool: string): string =>
  `Not run: this turn has called ${tool} with exactly this input ${REPEATS_REFUSED_FROM - 1} times, and has done nothing new since. Use its result or do something else.`
