/** One turn from its start to its durable end: whatever happens in between, it is recorded once and told once. */

import type { AgentConfig, CostConfig } from '@sluice/config'
import type { Permit } from '@sluice/kit'
import { AppError, type Clock, type Events, type IdempotencyKey, type Logger, type Policy, type Store } from '@sluice/sdk'
import type { Deadlines } from './deadlines.ts'
import { newTrace } from './ids.ts'
import { type LoopDeps, runLoop } from './loop.ts'
import type { Lease } from './registry.ts'
import type { TurnResult } from './turn.ts'
import { doneEnd, failedEnd, tellCompleted, tellFailed, tellStarted } from './turn-report.ts'
import type { LiveTurn, TurnScope } from './turn-scope.ts'
import { createWhileAsking } from './while-asking.ts'

export interface AgentSettings {
  readonly agent: AgentConfig
  readonly cost: CostConfig
  readonly policy: Policy
}

export type TurnStorage = Pick<Store, 'sessions' | 'turns' | 'idempotency'>

export interface ConductDeps extends Omit<LoopDeps, 'turns'> {
  readonly store: TurnStorage
  readonly lease: () => Lease
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
  readonly config: () => AgentSettings
  readonly deadlines: Deadlines
  /** Why the daemon stops, once it does. */
  readonly stopReason: () => AppError | undefined
}

/** A turn that was started so often without reaching its end most likely takes the daemon down with it. */
const STARTS_MAX = 5

/** Rejects with an `AppError`; a key whose turn was recorded as failed is released by then. */
export async function conductTurn(deps: ConductDeps, turn: LiveTurn, permit: Permit): Promise<TurnResult> {
  const { clock, deadlines } = deps
  const settings = deps.config()
  const lease = deps.lease()
  const timeoutSecs = settings.agent.turn_timeout_secs
  const deadline = deadlines.watch(timeoutSecs * 1000, () =>
    turn.cancellation.cancel(new AppError('upstream_timeout', `The turn took longer than ${timeoutSecs} s`)),
  )
  const scope: TurnScope = {
    ...settings,
    policy: () => deps.config().policy,
    turn,
    registry: lease.registry,
    trace: newTrace(turn.trace),
    startMs: clock.nowMs(),
    startedAtMs: clock.monotonicMs(),
    progress: { attempts: 1, entry: 0, model: null, iterations: 0, usage: { inputTokens: 0, outputTokens: 0, costUsd: 0 } },
    whileAsking: createWhileAsking(turn, {
      permit,
      deadlines,
      deadline,
      stopReason: deps.stopReason,
      async waits(isWaiting) {
        try {
          if (turn.kept) await deps.store.turns.waits(turn.id, isWaiting)
        } catch (error) {
          deps.log.error('the attempt of a waiting turn could not be counted', { turn: turn.id, error })
        }
      },
    }),
  }
  try {
    return await work(deps, scope, permit)
  } catch (error) {
    throw await fail(deps, scope, error)
  } finally {
    deadlines.forget(deadline)
    lease.release()
  }
}

async function work(deps: ConductDeps, scope: TurnScope, permit: Permit): Promise<TurnResult> {
  const { turns, sessions } = deps.store
  const { turn, agent, progress } = scope
  turn.cancellation.throwIfCancelled()
  turn.phase = 'running'
  tellStarted(deps, scope)
  if (turn.delivery) progress.attempts = turn.delivery.attempts
  else if (turn.kept) {
    progress.attempts = await turns.start(turn.id)
    if (progress.attempts > STARTS_MAX) throw new AppError('internal', `The turn was started ${STARTS_MAX} times and never reached its end`)
  }
  const history = turn.session === null ? [] : await sessions.history(turn.session, agent.max_history_messages)
  const { text, messages } = await runLoop({ ...deps, turns }, scope, history)
  turn.cancellation.throwIfCancelled()
  turn.phase = 'ending'
  permit.release() // The next turn starts during this commit, and can share it.
  const replies = await turns.finish(doneEnd(deps, scope, text, messages))
  tellCompleted(deps, scope)
  return { id: turn.id, text, model: progress.model ?? '', usage: progress.usage, replies }
}

/** Records and tells a failure. Resolves to what the caller is told, whether or not the store took the record. */
async function fail(deps: ConductDeps, scope: TurnScope, error: unknown): Promise<AppError> {
  const { turn } = scope
  const failure = error instanceof AppError ? error : new AppError('internal', 'The turn failed by a fault of ours', { cause: error })
  const about = { turn: turn.id, source: turn.source, code: failure.code, reason: failure.message }
  if (failure.code === 'internal') deps.log.error('turn failed', { ...about, error: failure.cause ?? failure })
  else deps.log[failure.code === 'aborted' ? 'info' : 'warn']('turn failed', about)
  await settleFailure(deps, scope, failure)
  tellFailed(deps, scope, failure)
  return failure
}

/**
 * Records a failed turn. A kept turn that a stop of the daemon cut, or whose end the store refused, stays kept with its key
 * and is resumed later; the inbox decides about a delivery.
 */
async function settleFailure(deps: ConductDeps, scope: TurnScope, failure: AppError): Promise<void> {
  const { store, log } = deps
  const { turn } = scope
  if (turn.delivery || turn.phase === 'ending') return
  if (turn.kept && failure === deps.stopReason()) return
  try {
    await store.turns.finish(failedEnd(deps, scope, failure))
  } catch (error) {
    log.error('failed turn not recorded', { turn: turn.id, error })
  }
}

/** Releases a key. Never rejects: the error that led here is the one to report. */
export async function releaseKey({ store, log }: Pick<ConductDeps, 'store' | 'log'>, key: IdempotencyKey | undefined): Promise<void> {
  try {
    if (key) await store.idempotency.release(key)
  } catch (error) {
    log.error('idempotency key not released', { error })
  }
}
