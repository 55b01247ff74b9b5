/** Conducts one turn from its start to its durable end, which is recorded and reported once. */

import { turnLimits } from '@sluice/config'
import type { Permit } from '@sluice/kit'
import { AppError, type IdempotencyKey, isLeaseLost, type Logger } from '@sluice/sdk'
import { type CompactDeps, compactCommand, compactOnRequest, readConversation } from '../compaction/conversation.ts'
import type { RegistryPin } from '../model/registry.ts'
import { limitsInForce, mainSettings, notConfigured, type SettingsSource } from '../turn/agent-settings.ts'
import { newTrace } from '../turn/ids.ts'
import { judgeAnew, type Links } from '../turn/linked-principal.ts'
import type { Shares } from '../turn/shares.ts'
import type { TurnResult } from '../turn/turn.ts'
import type { TurnStorage } from '../turn/turn-home.ts'
import type { LiveTurn, TurnScope } from '../turn/turn-scope.ts'
import { standingOfTurn } from '../turn/turn-standing.ts'
import { createWhileAsking } from '../turn/while-asking.ts'
import { DIRECT_CALL, runDirectCall } from './direct-call.ts'
import { type LoopDeps, type LoopResult, runLoop } from './loop.ts'
import { doneEnd, emitCompleted, emitFailed, emitStarted, failedEnd } from './turn-report.ts'

export interface ConductDeps extends Omit<LoopDeps, 'turns'>, Pick<CompactDeps, 'texts'>, SettingsSource {
  /** Pins the registry in force of an agent. */
  readonly pinRegistry: (agent: string) => RegistryPin
  /** Returns the reason for the daemon's stop; undefined while it runs. */
  readonly stopReason: () => AppError | undefined
  readonly shares?: Shares
  /** Absent: no accounts are linked. */
  readonly linked?: Links
}

/** A turn that was started this often without reaching its end most likely crashes the daemon. */
const STARTS_MAX = 5

/** Rejects with an `AppError`, after the key of a turn that was recorded as failed has been released. */
export async function conductTurn(deps: ConductDeps, turn: LiveTurn, permit: Permit): Promise<TurnResult> {
  const { clock, deadlines } = deps
  // A turn of an agent that was removed from the configuration ends before it does anything.
  const settings = deps.config(turn.agent) ?? mainSettings(deps)
  const pin = deps.pinRegistry(turn.agent)
  const limits = turnLimits(settings.agent, standingOfTurn(turn))
  const cancelAfter = (secs: number, what: string) =>
    deadlines.watch(secs * 1000, () => turn.cancellation.cancel(new AppError('upstream_timeout', `${what} took longer than ${secs} s`)))
  const deadline = cancelAfter(limits.turnSecs, 'The turn')
  const ofStep = cancelAfter(limits.stepSecs, 'A step of the turn')
  const alive = () => deadlines.postpone(ofStep, limits.stepSecs * 1000)
  const scope: TurnScope = {
    agent: settings.agent,
    cost: settings.cost,
    turnLimits: limits,
    limits: limitsInForce(deps, turn.agent, settings.workspace),
    turn,
    registry: pin.registry,
    trace: newTrace(turn.trace),
    startMs: clock.nowMs(),
    startedAtMs: clock.monotonicMs(),
    progress: {
      attempts: 1,
      entry: entryOf(pin.registry, turn),
      model: null,
      iterations: 0,
      turnTokens: 0,
      files: new Map(),
      fixedTokens: 0,
      tokenRatio: deps.tokenRatios.get(turn.session ?? '') ?? 1,
      usage: { inputTokens: 0, outputTokens: 0, costUsd: 0 },
      steps: [],
    },
    whileAsking: createWhileAsking(turn, {
      permit,
      deadlines,
      paused: [deadline, ofStep],
      stopReason: deps.stopReason,
      shares: deps.shares,
      async waits(isWaiting) {
        try {
          if (turn.kept) await turn.home.turns.waits(turn.id, isWaiting)
        } catch (error) {
          if (isLeaseLost(error)) return
          deps.log.error('the attempt of a waiting turn could not be counted', { turn: turn.id, error })
        }
      },
    }),
    alive,
    pauseStep() {
      const resume = deadlines.pause(ofStep)
      return () => {
        resume()
        alive()
      }
    },
    leftMs: () => deadline.atMs - clock.monotonicMs(),
  }
  turn.progress = scope.progress
  try {
    return await work(deps, scope, permit)
  } catch (error) {
    throw await fail(deps, scope, error)
  } finally {
    deadlines.forget(deadline)
    deadlines.forget(ofStep)
    pin.release()
  }
}

async function work(deps: ConductDeps, scope: TurnScope, permit: Permit): Promise<TurnResult> {
  const { turn, progress } = scope
  const { turns } = turn.home
  if (turn.isTextInStore) await readText(deps, turn)
  turn.cancellation.throwIfCancelled()
  if (!deps.config(turn.agent)) throw new AppError('unavailable', notConfigured(turn.agent))
  turn.phase = 'running'
  emitStarted(deps, scope)
  if (turn.delivery) progress.attempts = turn.delivery.attempts
  else if (turn.kept) {
    progress.attempts = await (turn.started ?? turns.start(turn.id))
    if (progress.attempts > STARTS_MAX) throw new AppError('internal', `The turn was started ${STARTS_MAX} times and never reached its end`)
  }
  await judgeAnew(deps.linked, turn)
  const ended = turn.source === DIRECT_CALL ? await runDirectCall({ ...deps, turns }, scope) : await converse({ ...deps, turns }, scope)
  turn.phase = 'ending'
  permit.release() // The next turn starts during this commit and can share it.
  const replies = await turns.finish(doneEnd(deps, scope, ended))
  const { text, finishReason } = ended
  emitCompleted(deps, scope, finishReason)
  return { id: turn.id, text, model: progress.model ?? '', finishReason, usage: progress.usage, replies }
}

/** Returns the number of the model that the turn begins with. */
const entryOf = ({ models: { labels } }: RegistryPin['registry'], { model: wanted }: LiveTurn): number =>
  Math.max(
    0,
    labels.findIndex(({ provider, model }) => `${provider}:${model}` === wanted),
  )

/** Reads the text of a turn that waited without it. A turn that ends without a record, such as when the daemon stops, needs none. */
async function readText({ stopReason }: ConductDeps, turn: LiveTurn): Promise<void> {
  const { reason } = turn.cancellation
  if (reason && (reason === stopReason() || isLeaseLost(reason))) return
  const row = await turn.home.turns.get(turn.id)
  if (!row) throw new AppError('internal', 'The stored turn is gone')
  turn.text = row.input
  turn.isTextInStore = false
}

async function converse(deps: ConductDeps & LoopDeps, scope: TurnScope): Promise<LoopResult> {
  const compact = compactCommand(scope.turn.text)
  if (compact) {
    const text = await compactOnRequest(deps, scope, compact.focus)
    scope.turn.tell?.({ type: 'text', delta: text })
    return { text, finishReason: 'stop', messages: [] }
  }
  const { turn, registry, progress } = scope
  await turn.cancellation.race(registry.models.findWindow(progress.entry))
  const ended = await runLoop(deps, scope, await readConversation(scope))
  scope.turn.cancellation.throwIfCancelled()
  return ended
}

/** Records and reports a failure. Resolves to the error for the caller, also when the store could not record it. */
async function fail(deps: ConductDeps, scope: TurnScope, error: unknown): Promise<AppError> {
  const { turn } = scope
  const failure =
    error instanceof AppError ? error : new AppError('internal', 'The turn failed because of an internal error', { cause: error })
  const about = { turn: turn.id, source: turn.source, code: failure.code, reason: failure.message }
  if (failure.code === 'internal') deps.log.error('turn failed', { ...about, error: failure.cause ?? failure })
  else deps.log[failure.code === 'aborted' ? 'info' : 'warn']('turn failed', about)
  await recordFailure(deps, scope, failure)
  emitFailed(deps, scope, failure)
  return failure
}

/**
 * Records a failed turn. A stored turn that a stop of the daemon, the loss of its lease or an outage of the store interrupted, or whose
 * end the store could not record, keeps its key and resumes later. The inbox worker decides about a delivery.
 */
async function recordFailure(deps: ConductDeps, scope: TurnScope, failure: AppError): Promise<void> {
  const { log } = deps
  const { turn } = scope
  if (isLeaseLost(failure)) return
  if (turn.delivery || turn.phase === 'ending' || (turn.kept && (failure === deps.stopReason() || isOutage(failure))))
    return recordUsage(deps, scope)
  try {
    await turn.home.turns.finish(failedEnd(deps, scope, failure))
  } catch (error) {
    log.error('failed turn not recorded', { turn: turn.id, error })
  }
}

/** Records what an attempt has used that did not end its turn. */
async function recordUsage({ log }: ConductDeps, { turn, progress }: TurnScope): Promise<void> {
  const { usage, model } = progress
  if (usage.inputTokens === 0 && usage.outputTokens === 0) return
  try {
    await turn.home.turns.addUsage(turn.id, { ...usage, model })
  } catch (error) {
    log.error('usage of an interrupted attempt not recorded', { turn: turn.id, error })
  }
}

/** Whether the store could not be reached. A start of the turn is counted each time, so that it does not go on for ever. */
const isOutage = ({ code, isPassing }: AppError): boolean => code === 'unavailable' && isPassing

/** Releases a key. Never rejects, so that the caller reports the original error. */
export async function releaseKey(
  { store, log }: { readonly store: TurnStorage; readonly log: Logger },
  key: IdempotencyKey | undefined,
): Promise<void> {
  try {
    if (key) await store.idempotency.release(key)
  } catch (error) {
    log.error('idempotency key not released', { error })
  }
}
