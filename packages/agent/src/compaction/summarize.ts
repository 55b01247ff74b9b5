/**
 * Summarises the oldest messages of a session, so that the rest fits into the window of the model. Each summary includes the one
 * before it, and is stored before the turn goes on.
 */
import { type BoundedMap, backoffMs } from '@sluice/kit'
import {
  AppError,
  type Conversation,
  type Events,
  isLeaseLost,
  type Logger,
  type SessionSummary,
  type SluiceEvent,
  type Usage,
} from '@sluice/sdk'
import { summarizedCount } from '../history/history.ts'
import { addUsage, NO_USAGE, OFFLINE } from '../model/call-model.ts'
import { windowOf } from '../model/endpoint-limits.ts'
import { aboutTurn } from '../turn/about-turn.ts'
import { Cancellation } from '../turn/cancellation.ts'
import type { Deadlines } from '../turn/deadlines.ts'
import type { TurnScope } from '../turn/turn-scope.ts'
import { readBlocks } from './summary-text.ts'
import { sourceCharsMax, TURN_SHARE, type WriteSummaryDeps, writeSummary } from './write-summary.ts'

export interface SummarizeDeps extends WriteSummaryDeps {
  readonly deadlines: Deadlines
  readonly events: Events
  readonly log: Logger
  /** The sessions whose last summary failed. */
  readonly failedSummaries: BoundedMap<string, FailedSummary>
}

export interface FailedSummary {
  /** The number of failures in a row. */
  readonly failures: number
  /** When it may be tried again, by the monotonic clock. */
  readonly retryAtMs: number
}

interface Session extends Conversation {
  readonly id: string
}

/** A session with more messages is summarised further by its next turns. */
const PASSES_MAX = 4
const RETRY_BACKOFF = { firstMs: 5 * 60_000, longestMs: 6 * 3_600_000, fixedShare: 1 }

/**
 * Summarises as much as one turn may. A failure is logged, and the session is tried again after a pause. Rejects only when the turn
 * is cancelled or its lease is lost.
 */
export async function summarizeSession(deps: SummarizeDeps, scope: TurnScope, session: Session): Promise<void> {
  const { clock, deadlines, log, failedSummaries } = deps
  const { turn } = scope
  const failed = failedSummaries.get(session.id)
  if (failed && clock.monotonicMs() < failed.retryAtMs) return
  const own = new Cancellation()
  const asking = askingScope(scope, own)
  const stopListening = turn.cancellation.onCancel((reason) => own.cancel(reason))
  const deadline = deadlines.watch(scope.turnLimits.turnSecs * 1000 * TURN_SHARE, () =>
    own.cancel(new AppError('upstream_timeout', 'the model took too long')),
  )
  try {
    await runPasses(deps, asking, session)
    failedSummaries.delete(session.id)
  } catch (error) {
    turn.cancellation.throwIfCancelled()
    if (isLeaseLost(error)) throw error
    const failures = failed?.failures ?? 0
    log[failures === 0 ? 'warn' : 'debug']('conversation not summarised; its oldest messages are left out', { turn: turn.id, error })
    failedSummaries.set(session.id, { failures: failures + 1, retryAtMs: clock.monotonicMs() + backoffMs(failures, RETRY_BACKOFF) })
  } finally {
    stopListening()
    deadlines.forget(deadline)
    scope.progress.usage = addUsage(scope.progress.usage, asking.progress.usage)
    scope.progress.turnTokens += asking.progress.turnTokens
  }
}

/** Returns the scope of the summarising calls: the models of the turn, without tools, files and listeners. */
function askingScope(scope: TurnScope, cancellation: Cancellation): TurnScope {
  const { turn, registry, progress } = scope
  const offline = registry.models.labels.findIndex(({ provider }) => provider === OFFLINE)
  const labels = offline < 0 ? registry.models.labels : registry.models.labels.slice(0, offline)
  return {
    ...scope,
    turn: { ...turn, text: '', tools: [], tell: undefined, cancellation },
    registry: { ...registry, models: { ...registry.models, labels } },
    progress: { ...progress, usage: NO_USAGE, turnTokens: 0 },
  }
}

async function runPasses(deps: SummarizeDeps, scope: TurnScope, session: Session): Promise<void> {
  const { turn, progress } = scope
  const { sessions } = turn.home
  const { messages, upTo } = session
  const to = upTo - messages.length + summarizedCount(messages, turn.text, windowOf(scope))
  let { summary } = session
  for (let pass = 0; pass < PASSES_MAX && (summary?.upTo ?? 0) < to; pass++) {
    const blocks = await readBlocks(sessions, session.id, {
      after: summary?.upTo ?? 0,
      to,
      charsMax: sourceCharsMax(scope, windowOf(scope).tokensMax),
    })
    if (blocks.length === 0) return
    const { usage: before } = progress
    const next = await writeSummary(deps, scope, { previous: summary, blocks })
    if (!(await sessions.summarize(session.id, { upTo, summary }, next))) return
    summary = next
    deps.events.emit(summarizedEvent(scope, session.id, { summary, before }), turn.owner)
    if (progress.turnTokens >= scope.turnLimits.tokens * TURN_SHARE) return
  }
}

function summarizedEvent(
  { turn, progress }: TurnScope,
  session: string,
  { summary, before }: { readonly summary: SessionSummary; readonly before: Usage },
): SluiceEvent {
  const { usage } = progress
  return {
    type: 'session_summarized',
    ...aboutTurn(turn.id, turn),
    session_id: session,
    messages: summary.upTo,
    model: summary.model,
    input_tokens: usage.inputTokens - before.inputTokens,
    output_tokens: usage.outputTokens - before.outputTokens,
    cost_usd: usage.costUsd - before.costUsd,
  }
}
