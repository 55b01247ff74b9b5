/**
 * Summarises the oldest messages of a session, or of a long turn, so that the rest fits into the window of the model. Each summary
 * includes the one before it, and is stored before the turn goes on.
 */
import { type BoundedMap, backoffMs } from '@sluice/kit'
import {
  AppError,
  type Conversation,
  type Events,
  isLeaseLost,
  type Logger,
  type ModelMessage,
  type SessionSummary,
  type SluiceEvent,
  type Usage,
} from '@sluice/sdk'
import { summarizedCount } from '../history/history.ts'
import { asRead, coveredBy, withNote } from '../history/message-notes.ts'
import { messagesTokens } from '../history/tokens.ts'
import { addUsage, NO_USAGE, OFFLINE } from '../model/call-model.ts'
import { windowOf } from '../model/endpoint-limits.ts'
import { aboutTurn } from '../turn/about-turn.ts'
import { Cancellation } from '../turn/cancellation.ts'
import type { Deadlines } from '../turn/deadlines.ts'
import type { TurnScope } from '../turn/turn-scope.ts'
import { blocksOf, readBlocks } from './summary-text.ts'
import { sourceTokensMax, TURN_SHARE, type WriteSummaryDeps, writeSummary } from './write-summary.ts'

export interface SummarizeDeps extends WriteSummaryDeps {
  /** The sizes of the files of conversations that are known, by path. */
  readonly fileBytes: BoundedMap<string, number>
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

export interface SummarizeOptions {
  /** The messages of the turn, for which there must be room. */
  readonly produced?: readonly ModelMessage[]
  /** What matters to the person who asks for the summary. */
  readonly focus?: string
  /** True for a summary of the whole session, which is also tried when the last one failed. */
  readonly isRequested?: boolean
}

/**
 * Summarises as much of a session as one turn may. Resolves to the failure, if there was one. Rejects only when the turn is cancelled or its
 * lease is lost.
 */
export async function summarizeSession(
  deps: SummarizeDeps,
  scope: TurnScope,
  session: Session,
  options: SummarizeOptions,
): Promise<unknown> {
  if (options.isRequested) deps.failedSummaries.delete(session.id)
  return tryToSummarize(deps, scope, session.id, (asking) => runPasses(deps, asking, session, options))
}

/**
 * Summarises the older messages of a long turn, and notes the summary on the newest of them. The first message, of the person, and the
 * newest call with its results stay. Resolves to false if nothing was summarised. Rejects as `summarizeSession` does.
 */
export async function summarizeTurn(deps: SummarizeDeps, scope: TurnScope, produced: ModelMessage[]): Promise<boolean> {
  const newest = produced.findLastIndex(({ role }) => role === 'assistant')
  const end = summarizedCount(produced.slice(1, newest), messagesTokens(produced.slice(newest)), windowOf(scope)) + 1
  const last = produced[end - 1]
  if (end < 3 || last?.role !== 'tool' || coveredBy(produced).at(1) === end - 1) return false
  const blocks = blocksOf(asRead(produced.slice(1, end)), { upTo: end, atMs: deps.clock.nowMs() })
  let isWritten = false
  await tryToSummarize(deps, scope, scope.turn.id, async (asking) => {
    let summary: SessionSummary | undefined
    for (let pass = 0; pass < PASSES_MAX && (summary?.upTo ?? 0) < end; pass++) {
      const done = summary?.upTo ?? 0
      summary = await writeSummary(deps, asking, { previous: summary, blocks: blocks.filter(({ upTo }) => upTo > done) })
    }
    if (!summary || summary.upTo < end) return
    produced[end - 1] = withNote(last, { compaction: { count: end - 1, text: summary.text, untrusted: summary.untrusted } })
    isWritten = true
  })
  return isWritten
}

/** A failure is logged and returned, and `key`, a session or a turn, is tried again after a pause. */
async function tryToSummarize(
  deps: SummarizeDeps,
  scope: TurnScope,
  key: string,
  write: (asking: TurnScope) => Promise<void>,
): Promise<unknown> {
  const { clock, deadlines, log, failedSummaries } = deps
  const { turn } = scope
  const failed = failedSummaries.get(key)
  if (failed && clock.monotonicMs() < failed.retryAtMs) return undefined
  const own = new Cancellation()
  const asking = askingScope(scope, own)
  const stopListening = turn.cancellation.onCancel((reason) => own.cancel(reason))
  const deadline = deadlines.watch(scope.turnLimits.turnSecs * 1000 * TURN_SHARE, () =>
    own.cancel(new AppError('upstream_timeout', 'the model took too long')),
  )
  try {
    await write(asking)
    failedSummaries.delete(key)
    return undefined
  } catch (error) {
    turn.cancellation.throwIfCancelled()
    if (isLeaseLost(error)) throw error
    const failures = failed?.failures ?? 0
    log[failures === 0 ? 'warn' : 'debug']('conversation not summarised; its oldest messages are left out', { turn: turn.id, error })
    failedSummaries.set(key, { failures: failures + 1, retryAtMs: clock.monotonicMs() + backoffMs(failures, RETRY_BACKOFF) })
    return error
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

async function runPasses(
  deps: SummarizeDeps,
  scope: TurnScope,
  session: Session,
  { produced = [], focus = '', isRequested = false }: SummarizeOptions,
): Promise<void> {
  const { turn, progress } = scope
  const { sessions } = turn.home
  const { messages, upTo } = session
  const count = isRequested ? messages.length : summarizedCount(messages, messagesTokens(asRead(produced)), windowOf(scope))
  const to = upTo - messages.length + count
  let { summary } = session
  for (let pass = 0; pass < PASSES_MAX && (summary?.upTo ?? 0) < to; pass++) {
    const blocks = await readBlocks(sessions, session.id, {
      after: summary?.upTo ?? 0,
      to,
      tokensMax: sourceTokensMax(scope, windowOf(scope).tokensMax),
    })
    if (blocks.length === 0) return
    const { usage: before } = progress
    const next = await writeSummary(deps, scope, { previous: summary, blocks, focus })
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
