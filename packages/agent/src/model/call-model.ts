/** Makes one call of one model, from loading the model to the cost of the call. */

import type { CostConfig } from '@sluice/config'
import type { BoundedMap } from '@sluice/kit'
import {
  AppError,
  type Clock,
  type Logger,
  type ModelCallOptions,
  type ModelMessage,
  type ModelTool,
  type ModelUsage,
  type Outcome,
  promptCacheKey,
  type Tool,
  type TurnStep,
  type Usage,
  type WithinTrace,
} from '@sluice/sdk'
import { bytesOf, showFiles } from '../history/attached-files.ts'
import { estimateTokens, messagesTokens } from '../history/tokens.ts'
import { describedTools } from '../tools/deferred-tools.ts'
import type { Budget } from '../turn/budget.ts'
import { allowedTools, fileCallerOf } from '../turn/call-scope.ts'
import { Cancellation } from '../turn/cancellation.ts'
import { callCostUsd, pricesWith } from '../turn/cost.ts'
import type { Deadlines } from '../turn/deadlines.ts'
import { newTrace } from '../turn/ids.ts'
import type { Scrub } from '../turn/scrub.ts'
import type { TurnScope } from '../turn/turn-scope.ts'
import { standingOfTurn } from '../turn/turn-standing.ts'
import { noteStep } from '../turn/turn-steps.ts'
import { type EndpointLimits, endpointLimits, windowOf } from './endpoint-limits.ts'
import { judge, type ModelFailure, modelFailure } from './model-failure.ts'
import { generateReply, type ModelReply, ReplyDraft, streamReply, UNCOUNTED } from './model-reply.ts'
import type { ToolSpecs } from './tool-specs.ts'

export interface ModelAsk {
  /** Returns the conversation, shortened to this number of tokens. */
  prompt(tokensMax: number): ModelMessage[]
  /** Summarises a conversation whose length the model has refused. Resolves to false when that was not possible. */
  compact?(): Promise<boolean>
  /** False when the model must answer with text. */
  readonly mayCallTools: boolean
  /** True when an empty reply, which every model has given also when it was asked again, is returned instead of a failure. */
  readonly mayBeEmpty?: boolean
  /** Returns a further limit of the reply for a conversation of this number of tokens. */
  outputTokensMax?(tokensMax: number): number
}

export interface CallModelDeps {
  readonly budget: Budget
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly log: Logger
  readonly scrub: Scrub
  readonly toolSpecs: ToolSpecs
  /** The tokens that the provider counts for one estimated token, by session. */
  readonly tokenRatios: BoundedMap<string, number>
  /** The files of requests that a model has refused, by `<provider>:<model> <path>`. */
  readonly refusedFiles: BoundedMap<string, true>
  /** The sizes of the files that were shown to models, by path. */
  readonly fileBytes: BoundedMap<string, number>
  readonly within: WithinTrace
}

/** A failure is final when a listener has received a part of the answer. */
export type Attempt = { readonly reply: ModelReply } | FailedAttempt

export interface FailedAttempt {
  readonly failure: ModelFailure
  readonly isFinal: boolean
  /** The estimated tokens of the prompt; given when it was too long. */
  readonly promptTokens?: number
}

/** The source of the turns of procedures. */
const PROCEDURES = 'sop'

/** The built-in provider, which answers within this process. It runs tools by name, so it needs no descriptions. */
export const OFFLINE = 'offline'

/**
 * Calls the current entry of the model chain once. `model_timeout_secs` limits the time to the next piece of a streamed reply, or to
 * the whole reply otherwise. Rejects only with the reason of the turn's cancellation.
 */
export async function callModel(deps: CallModelDeps, scope: TurnScope, ask: ModelAsk): Promise<Attempt> {
  const { clock, deadlines } = deps
  const { turn, registry, progress } = scope
  const limits = endpointLimits(scope)
  let prompt = ask.prompt(windowOf(scope).tokensMax)
  let files: readonly string[] = []
  const provider = registry.models.labels[progress.entry]?.provider ?? ''
  // The built-in model answers within this process: a turn that a crash ends before its answer has done nothing, and its client repeats it.
  if (provider !== OFFLINE) await turn.keep?.()
  const trace = newTrace(scope.trace)
  const startMs = clock.nowMs()
  const startedAtMs = clock.monotonicMs()
  const call = new Cancellation()
  const stopListening = turn.cancellation.onCancel((reason) => call.cancel(reason))
  const timeoutMs = limits.model_timeout_secs * 1000
  let timedOut: AppError | undefined
  const resumeStep = scope.pauseStep()
  const deadline = deadlines.watch(timeoutMs, () => {
    timedOut = new AppError('upstream_timeout', `did not answer within ${limits.model_timeout_secs} s`)
    call.cancel(timedOut)
  })
  let model = registry.models.labels[progress.entry]?.model ?? ''
  let isHeard = false
  let tools: readonly ModelTool[] = []
  /** The part of the reply that has arrived; undefined until the request leaves, and once it is counted. */
  let draft: ReplyDraft | undefined

  const count = (used: ModelUsage, arrived: ReplyDraft): Usage => {
    draft = undefined
    const prices = pricesWith(scope.cost, { provider, model }, registry.models.settings(progress.entry))
    const usage = usageOf(prices, used, { provider, model, prompt, tools, arrived })
    deps.budget.add(usage.costUsd, turn.id)
    progress.usage = addUsage(progress.usage, usage)
    progress.turnTokens += Math.max(0, usage.inputTokens - (countOf(used.inputTokens.cacheRead) ?? 0)) + usage.outputTokens
    return usage
  }
  const countBroken = (): Usage => {
    if (!isBilled(call, draft)) return NO_USAGE
    progress.model ??= model
    return count(UNCOUNTED, draft)
  }

  const observe = (outcome: Outcome, usage: Usage, more: Pick<TurnStep, 'finish' | 'error'> = {}) => {
    const tookMs = clock.monotonicMs() - startedAtMs
    registry.observe({ kind: 'model_call', provider, model, outcome, ...usage, span: { trace, startMs, tookMs } })
    // A call of the built-in model takes no time and costs nothing: its turns store no step.
    if (provider === OFFLINE) return
    const name = `${provider}:${model}`
    noteStep(progress.steps, { kind: 'model', name, atMs: startMs, tookMs: Math.round(tookMs), outcome, ...usage, ...more })
  }

  try {
    const loaded = await call.race(registry.models.load(progress.entry))
    model = loaded.modelId
    ;({ prompt, paths: files } = await call.race(shownTo(deps, scope, { prompt, limits, label: `${provider}:${model}` })))
    tools = await call.race(toolsFor(deps, scope, { provider, takesTools: limits.tools }))
    const options = callOptions(limits, {
      ...ask,
      prompt,
      tools,
      tokensMax: windowOf(scope).tokensMax,
      session: turn.session,
      abortSignal: call.signal,
    })
    const { tell } = turn
    call.throwIfCancelled()
    const arriving = new ReplyDraft()
    draft = arriving
    const reply = await deps.within(trace, () =>
      tell
        ? streamReply(loaded, options, call, {
            draft: arriving,
            alive: () => deadlines.postpone(deadline, timeoutMs),
            hear: (type, delta) => {
              if (type === 'text') isHeard = true
              tell({ type, delta })
            },
          })
        : generateReply(loaded, options, call, arriving),
    )
    const usage = count(reply.usage, arriving)
    learnRatio(deps, scope, { estimated: messagesTokens(prompt) + toolsTokens(tools), reported: countOf(reply.usage.inputTokens.total) })
    const failure = judge(reply)
    observe(failure ? 'error' : 'ok', usage, { finish: reply.finish, ...(failure && { error: failure.reason }) })
    if (failure) return { failure, isFinal: isHeard }
    progress.model = model
    progress.iterations++
    return { reply }
  } catch (error) {
    const usage = countBroken()
    if (turn.cancellation.reason) observe('aborted', usage)
    turn.cancellation.throwIfCancelled()
    const failure: ModelFailure =
      timedOut && error === timedOut
        ? { reason: timedOut.message, repeat: 'never', kind: 'timeout' }
        : modelFailure(error, { nowMs: clock.nowMs(), scrub: deps.scrub })
    observe('error', usage, { error: failure.reason })
    const isOfFiles = files.length > 0 && isRefusal(failure) && (failure.fits === undefined || failure.isTooBig === true)
    if (!isOfFiles) return { failure, isFinal: isHeard, ...(failure.fits !== undefined && { promptTokens: messagesTokens(prompt) }) }
    for (const path of files) deps.refusedFiles.set(`${provider}:${model} ${path}`, true)
    return { failure: { ...failure, repeat: 'once' }, isFinal: isHeard }
  } finally {
    stopListening()
    deadlines.forget(deadline)
    resumeStep()
  }
}

/** An estimate of fewer tokens says little about the script of a conversation. */
const RATIO_TOKENS_MIN = 1000
/** A service that counts fewer or more tokens counts something else, such as only what is not cached. */
const RATIO_MIN = 3 / 4
const RATIO_MAX = 3

/** Corrects the estimates of a session by the tokens that the provider counted. */
function learnRatio(
  { tokenRatios }: CallModelDeps,
  { turn, progress }: TurnScope,
  { estimated, reported }: { readonly estimated: number; readonly reported: number | undefined },
): void {
  if (reported === undefined || reported === 0 || estimated < RATIO_TOKENS_MIN) return
  progress.tokenRatio = Math.min(RATIO_MAX, Math.max(RATIO_MIN, reported / estimated))
  if (turn.session !== null) tokenRatios.set(turn.session, progress.tokenRatio)
}

/** Returns the tokens of the system prompt and of the described tools, which every request of the turn has. */
export async function fixedTokens(deps: Pick<CallModelDeps, 'toolSpecs'>, scope: TurnScope, system: string): Promise<number> {
  const provider = scope.registry.models.labels[scope.progress.entry]?.provider ?? ''
  const tools = await toolsFor(deps, scope, { provider, takesTools: endpointLimits(scope).tools })
  return estimateTokens(system) + toolsTokens(tools)
}

/** Returns the prompt with the files of the conversation, except the files of a request that this model has refused. */
async function shownTo(
  { log, refusedFiles, fileBytes }: CallModelDeps,
  { turn, limits, progress }: TurnScope,
  { prompt, limits: { media: kinds }, label }: { readonly prompt: ModelMessage[]; readonly limits: EndpointLimits; readonly label: string },
) {
  const workspace = limits()?.workspace
  if (!workspace) return { prompt, paths: [] }
  const shown = await showFiles(prompt, {
    kinds,
    workspace: workspace.as({
      caller: fileCallerOf({ turn: turn.id, session: turn.session, caller: turn.caller ?? turn.owner, standing: standingOfTurn(turn) }),
    }),
    log,
    read: progress.files,
    isRefused: (path) => refusedFiles.get(`${label} ${path}`) === true,
  })
  for (const [path, part] of progress.files) if (part) fileBytes.set(path, bytesOf(part))
  return shown
}

/** Tells whether a provider refuses the request itself, which may be because of its files. */
const isRefusal = ({ kind, repeat }: ModelFailure): boolean => kind === 'provider' && repeat === 'never'

async function toolsFor(
  deps: Pick<CallModelDeps, 'toolSpecs'>,
  { registry, limits, turn, progress }: TurnScope,
  { provider, takesTools }: { readonly provider: string; readonly takesTools: boolean },
): Promise<ModelTool[]> {
  const tools = allowedTools({ limits, tools: turn.tools })
  if (provider === OFFLINE || !takesTools || registry.offered.length === 0 || tools?.length === 0) return []
  const specs = await deps.toolSpecs(registry)
  // Only a turn of a procedure has an outcome to report.
  const isOffered = ({ name, reportsOnly }: Tool) => (tools?.includes(name) ?? true) && (!reportsOnly || turn.source === PROCEDURES)
  const offered = registry.offered.filter(isOffered)
  const names = new Set(offered.map(({ name }) => name))
  return describedTools(
    offered,
    specs.filter(({ name }) => names.has(name)),
    registry.models.window(progress.entry).tokens,
  )
}

interface CallParts extends Omit<ModelAsk, 'prompt'> {
  readonly prompt: ModelMessage[]
  readonly tools: readonly ModelTool[]
  readonly tokensMax: number
  readonly session: string | null
  readonly abortSignal: AbortSignal
}

function callOptions(
  limits: EndpointLimits,
  { prompt, tools, mayCallTools, outputTokensMax, tokensMax, session, abortSignal }: CallParts,
): ModelCallOptions {
  const { max_output_tokens, temperature, reasoning } = limits
  const outputMax = Math.min(max_output_tokens ?? Number.POSITIVE_INFINITY, outputTokensMax?.(tokensMax) ?? Number.POSITIVE_INFINITY)
  return {
    prompt,
    abortSignal,
    // Requests with the same key reach the same cache, where an endpoint takes one.
    ...(session !== null && { providerOptions: promptCacheKey(session) }),
    ...(Number.isFinite(outputMax) && { maxOutputTokens: outputMax }),
    ...(temperature !== undefined && { temperature }),
    ...(reasoning !== undefined && { reasoning }),
    // The tools are described even when they may not be called, because providers refuse a history with calls otherwise.
    ...(tools.length > 0 && { tools: [...tools], toolChoice: { type: mayCallTools ? 'auto' : 'none' } }),
  }
}

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, costUsd: 0 }

export const addUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  costUsd: a.costUsd + b.costUsd,
})

/** A service that counts more tokens for one call counts wrongly. */
const TOKENS_MAX = 1_000_000_000

/** Returns undefined for a number that cannot be a count, which would spoil the limits of spending. */
const countOf = (tokens: number | undefined): number | undefined =>
  tokens !== undefined && tokens >= 0 && tokens <= TOKENS_MAX ? tokens : undefined

/**
 * Whether a provider bills a call that has no usage. `draft` is undefined until the request leaves. A cancelled request was read, and
 * one that failed was read if a part of its answer has arrived.
 */
export const isBilled = ({ reason }: Cancellation, draft: ReplyDraft | undefined): draft is ReplyDraft =>
  draft !== undefined && (reason !== undefined || draft.tokens > 0)

const toolsTokens = (tools: readonly ModelTool[]): number => (tools.length > 0 ? estimateTokens(JSON.stringify(tools)) : 0)

export interface CountedCall {
  readonly provider: string
  readonly model: string
  readonly prompt: readonly ModelMessage[]
  readonly tools: readonly ModelTool[]
  /** The part of the reply that has arrived. */
  readonly arrived: ReplyDraft
}

/** Returns the tokens that the provider counted, or an estimate. */
export function usageOf(prices: CostConfig['prices'], counted: ModelUsage, call: CountedCall): Usage {
  const [cacheRead, cacheWrite] = [countOf(counted.inputTokens.cacheRead), countOf(counted.inputTokens.cacheWrite)]
  const inputTokens = countOf(counted.inputTokens.total) ?? messagesTokens(call.prompt) + toolsTokens(call.tools)
  const outputTokens = countOf(counted.outputTokens.total) ?? call.arrived.tokens
  const { provider, model } = call
  return { inputTokens, outputTokens, costUsd: callCostUsd(prices, { provider, model, inputTokens, outputTokens, cacheRead, cacheWrite }) }
}
