/**
 * Summarises the oldest messages of a session, so that the rest fits into the window of the model. Each summary includes the one
 * before it, and is stored before the turn goes on.
 */
import { type BoundedMap, backoffMs } from '@sluice/kit'
import {
  AppError,
  type Clock,
  type Conversation,
  type Events,
  isLeaseLost,
  type Logger,
  type SessionSummary,
  type SluiceEvent,
  type Usage,
} from '@sluice/sdk'
import { aboutTurn } from './about-turn.ts'
import type { AskModel } from './ask-model.ts'
import { addUsage, type ModelAsk, NO_USAGE, OFFLINE } from './call-model.ts'
import { Cancellation } from './cancellation.ts'
import type { Deadlines } from './deadlines.ts'
import { windowOf } from './endpoint-limits.ts'
import { summarizedCount, summaryCharsMax } from './history.ts'
import type { ReplyEnd } from './model-reply.ts'
import { shorten } from './shorten.ts'
import { type Block, readBlocks, summaryInstruction, summaryRequest } from './summary-text.ts'
import type { TurnScope } from './turn-scope.ts'

export interface SummarizeDeps {
  readonly askModel: AskModel
  readonly clock: Clock
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
/** The largest part of the window that a reply takes. Reasoning counts too. */
const OUTPUT_SHARE = 1 / 4
const OUTPUT_TOKENS_MAX = 16_000
/** A reply may have this size even in the smallest window. */
const OUTPUT_TOKENS_MIN = 500
const SUMMARY_CHARS_MAX = 8000
const CHARS_PER_WORD = 8
/** The room for the line about a cut, so that a cut summary is not cut again when it is used. */
const CUT_CHARS = 50
const RETRY_BACKOFF = { firstMs: 5 * 60_000, longestMs: 6 * 3_600_000, fixedShare: 1 }
/** The part of the turn's limits, of time and of tokens, that its summaries may use. */
const TURN_SHARE = 1 / 2
/** The texts of one call have this size even in the smallest window. */
const SOURCE_CHARS_MIN = 1000
/** The room for the instruction. */
const INSTRUCTION_CHARS = 2000
/** The ends of a reply that is a summary. One that is cut at its end still has the oldest facts. */
const COMPLETE: ReadonlySet<ReplyEnd> = new Set(['stop', 'length', 'other'])

/**
 * Summarises as much as one turn may. A failure is logged, and the session is tried again after a pause. Rejects only when the turn
 * is cancelled or its lease is lost.
 */
export async function summarizeSession(deps: SummarizeDeps, scope: TurnScope, session: Session): Promise<void> {
  const { clock, deadlines, log, failedSummaries } = deps
  const { turn, agent } = scope
  const failed = failedSummaries.get(session.id)
  if (failed && clock.monotonicMs() < failed.retryAtMs) return
  const own = new Cancellation()
  const asking = askingScope(scope, own)
  const stopListening = turn.cancellation.onCancel((reason) => own.cancel(reason))
  const deadline = deadlines.watch(agent.turn_timeout_secs * 1000 * TURN_SHARE, () =>
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
    progress: { ...progress, usage: NO_USAGE },
  }
}

async function runPasses(deps: SummarizeDeps, scope: TurnScope, session: Session): Promise<void> {
  const { turn, agent, progress } = scope
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
    const { inputTokens, outputTokens } = progress.usage
    if (inputTokens + outputTokens >= agent.max_turn_tokens * TURN_SHARE) return
  }
}

/** Asks the model for a summary of the previous one and of as many blocks as its window takes. */
async function writeSummary(
  { askModel, clock }: SummarizeDeps,
  scope: TurnScope,
  { previous, blocks }: { readonly previous: SessionSummary | undefined; readonly blocks: readonly Block[] },
): Promise<SessionSummary> {
  let charsMax = 0
  let source: Block = { upTo: 0, upToMs: 0, text: '', untrusted: false }
  const prompt: ModelAsk['prompt'] = (tokensMax) => {
    charsMax = Math.min(SUMMARY_CHARS_MAX, summaryCharsMax(tokensMax))
    const before = previous ? shorten(previous.text, charsMax) : ''
    source = takeBlocks(blocks, sourceCharsMax(scope, tokensMax) - before.length)
    return [
      { role: 'system', content: summaryInstruction(Math.ceil(charsMax / CHARS_PER_WORD)) },
      { role: 'user', content: [{ type: 'text', text: summaryRequest(before, source.text) }] },
    ]
  }
  const reply = await askModel(scope, { prompt, mayCallTools: false, outputTokensMax })
  const text = reply.text.trim()
  if (text === '' || !COMPLETE.has(reply.finish)) throw new AppError('upstream', `the model wrote no summary (${reply.finish})`)
  return {
    text: (text.length > charsMax ? shorten(text, charsMax - CUT_CHARS) : text).toWellFormed(),
    upTo: source.upTo,
    upToMs: source.upToMs,
    model: scope.progress.model ?? '',
    atMs: clock.nowMs(),
    untrusted: previous?.untrusted || source.untrusted,
  }
}

const outputTokensMax = (tokensMax: number): number =>
  Math.min(OUTPUT_TOKENS_MAX, Math.max(OUTPUT_TOKENS_MIN, Math.floor(tokensMax * OUTPUT_SHARE)))

/** Returns the size of the texts to summarise in one call. The window also holds the reply, and the turn needs tokens for its answer. */
function sourceCharsMax({ agent }: TurnScope, tokensMax: number): number {
  const tokens = Math.min(tokensMax - outputTokensMax(tokensMax), agent.max_turn_tokens * TURN_SHARE)
  return Math.max(SOURCE_CHARS_MIN, tokens * 4 - INSTRUCTION_CHARS)
}

/** Takes the oldest blocks that fit, and at least one, if necessary shortened. */
function takeBlocks(blocks: readonly Block[], charsMax: number): Block {
  const texts: string[] = []
  let chars = 0
  let last: Pick<Block, 'upTo' | 'upToMs'> = { upTo: 0, upToMs: 0 }
  let untrusted = false
  for (const block of blocks) {
    const text = shorten(block.text, charsMax)
    if (texts.length > 0 && chars + text.length > charsMax) break
    texts.push(text)
    chars += text.length + 1
    last = block
    untrusted ||= block.untrusted
  }
  return { upTo: last.upTo, upToMs: last.upToMs, text: texts.join('\n'), untrusted }
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
