/** Reports the start and end of a turn to the store, subscribers and observers. Only the store gets message text. */
import type { AppError, Clock, Events, FinishReason, Outcome, TurnEnd } from '@sluice/sdk'
import { aboutTurn } from '../turn/about-turn.ts'
import type { TurnScope } from '../turn/turn-scope.ts'
import { DIRECT_CALL } from './direct-call.ts'
import type { LoopResult } from './loop.ts'

export interface ReportDeps {
  readonly events: Events
  readonly clock: Clock
}

function turnEnd(
  { clock }: ReportDeps,
  { turn, progress }: TurnScope,
  end: Pick<TurnEnd, 'status' | 'response' | 'finishReason' | 'error' | 'messages' | 'delivery'>,
): TurnEnd {
  return {
    id: turn.id,
    sessionId: turn.session,
    agent: turn.agent,
    ...(turn.owner !== undefined && { owner: turn.owner }),
    source: turn.source,
    input: turn.text,
    model: progress.model,
    ...progress.usage,
    steps: progress.steps,
    attempts: progress.attempts,
    createdAtMs: turn.createdAtMs,
    endedAtMs: clock.nowMs(),
    ...end,
    ...(turn.idempotency && { idempotency: turn.idempotency }),
  }
}

export const doneEnd = (deps: ReportDeps, scope: TurnScope, { text: response, finishReason, messages, files = [] }: LoopResult): TurnEnd =>
  turnEnd(deps, scope, {
    status: 'done',
    response,
    finishReason,
    error: null,
    messages,
    ...(scope.turn.delivery && {
      delivery: { inbox: scope.turn.delivery.inbox, replies: scope.turn.delivery.reply(response, files, scope.trace) },
    }),
  })

export function failedEnd(deps: ReportDeps, scope: TurnScope, { code, message, refusedFor, isPassing }: AppError): TurnEnd {
  const status = code === 'aborted' ? 'aborted' : 'failed'
  const error = { code, message, ...(refusedFor !== undefined && { refusedFor }), ...(isPassing && { isPassing }) }
  return turnEnd(deps, scope, { status, response: null, error, messages: [] })
}

export function emitStarted({ events }: ReportDeps, { turn }: TurnScope): void {
  events.emit({ type: 'turn_started', ...aboutTurn(turn.id, turn), source: turn.source }, turn.owner)
}

export function emitCompleted(deps: ReportDeps, scope: TurnScope, finishReason: FinishReason): void {
  const { turn, progress } = scope
  const { inputTokens, outputTokens, costUsd } = progress.usage
  deps.events.emit(
    {
      type: 'turn_completed',
      ...aboutTurn(turn.id, turn),
      source: turn.source,
      model: progress.model ?? '',
      took_ms: Math.round(observe(deps, scope, 'ok')),
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      cost_usd: costUsd,
      finish_reason: finishReason,
    },
    turn.owner,
  )
}

export function emitFailed(deps: ReportDeps, scope: TurnScope, { code, message, refusedFor }: AppError): void {
  const { turn } = scope
  deps.events.emit(
    {
      type: 'turn_failed',
      ...aboutTurn(turn.id, turn),
      source: turn.source,
      code,
      error: message,
      ...(refusedFor !== undefined && { refused_for: refusedFor }),
      ...(turn.delivery && { inbox: turn.delivery.inbox }),
    },
    turn.owner,
  )
  observe(deps, scope, code === 'aborted' ? 'aborted' : 'error')
}

/** Reports the turn to observers and returns its duration in milliseconds. */
function observe({ clock }: ReportDeps, scope: TurnScope, outcome: Outcome): number {
  const { turn, registry, progress, trace, startMs } = scope
  const { labels } = registry.models
  // A direct call asks no model.
  const label = turn.source === DIRECT_CALL ? undefined : (labels[progress.entry] ?? labels.at(-1))
  const tookMs = clock.monotonicMs() - scope.startedAtMs
  registry.observe({
    kind: 'turn',
    source: turn.source,
    provider: label?.provider ?? '',
    model: progress.model ?? label?.model ?? '',
    outcome,
    iterations: progress.iterations,
    span: { trace, startMs, tookMs },
  })
  return tookMs
}
