/** The agent: accepts turns, runs each in its session's lane, and resumes the turns that a crash interrupted. */

import { type LaneQueue, type Permit, signalScope } from '@sluice/kit'
import {
  AppError,
  type ClientId,
  type Clock,
  type Events,
  type Logger,
  type ModelMessage,
  type Secret,
  type TurnRow,
  type WithinTrace,
} from '@sluice/sdk'
import { aborted } from './aborted.ts'
import { createAskModel } from './ask-model.ts'
import { Budget } from './budget.ts'
import { type AgentSettings, type ConductDeps, conductTurn, releaseKey, type TurnBooks } from './conduct-turn.ts'
import { createLiveTurn } from './create-live-turn.ts'
import { Deadlines } from './deadlines.ts'
import { createTurnIds } from './ids.ts'
import type { Lease } from './registry.ts'
import { runCall } from './run-call.ts'
import { createScrub } from './scrub.ts'
import { ToolExecutor } from './tool-call.ts'
import { createToolSpecs } from './tool-specs.ts'
import type { Agent, Approver, TurnDelivery, TurnResult } from './turn.ts'
import { parseTurnContext, type TurnContext } from './turn-context.ts'
import type { LiveTurn } from './turn-scope.ts'

export interface AgentDeps {
  readonly store: TurnBooks
  /** Where turns wait. Shared with the inbox, whose messages are turns too, so that one bound holds for both. */
  readonly lanes: LaneQueue
  /** The registry of the moment, for one turn. */
  readonly lease: () => Lease
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
  /** Read as each turn begins. */
  readonly config: () => AgentSettings
  /** The identity of a resumed turn: the same for the same caller, another for every other. */
  readonly mintClient: (caller: string) => ClientId
  /** Asks a person where the turn's own caller cannot. */
  readonly approve?: Approver
  /** Values that must not show in what tools return. */
  readonly secrets?: () => readonly Secret[]
  readonly newId?: () => string
  /** Model calls and tools run in it; default: as they are. */
  readonly within?: WithinTrace
}

/** More than can ever have been accepted: the largest `max_queued_turns` and `max_concurrent_turns` together. */
const UNFINISHED_MAX = 101_024
/** What aborted turns may still take to be recorded while the daemon stops. */
const SETTLE_MS = 1000
const RETRY_AFTER_SECS = 5
/** All turns but those of messages share the turns of one group in the lane queue. */
const TURNS_GROUP = 'turns'

interface Live {
  readonly turn: LiveTurn
  readonly ended: Promise<unknown>
}

export function createAgent(deps: AgentDeps): Agent {
  const { store, lanes, clock, log, within = (_, work) => work() } = deps
  const deadlines = new Deadlines(clock)
  const secrets = deps.secrets ?? (() => [])
  const scrub = createScrub(secrets)
  const making = { clock, log, newId: deps.newId ?? createTurnIds(clock) }
  /** Waiting and running turns; bounded by `max_queued_turns`, and by `UNFINISHED_MAX` after a crash. */
  const live = new Map<string, Live>()
  let stopReason: AppError | undefined

  const conduct: ConductDeps = {
    ...deps,
    deadlines,
    askModel: createAskModel({
      budget: new Budget(store.turns, clock),
      clock,
      deadlines,
      log,
      scrub,
      within,
      toolSpecs: createToolSpecs(),
    }),
    tools: new ToolExecutor({ events: deps.events, clock, log, scrub, secrets, within, approve: deps.approve }),
    stopReason: () => stopReason,
  }
  /** Turns in the queue that have not started. */
  let waiting = 0

  /** Queues a turn in its session's lane. Throws `unavailable` when the queue is full, unless `isResumed`, or the daemon stops. */
  function enter(turn: LiveTurn, { isResumed = false } = {}): Promise<TurnResult> {
    if (stopReason) throw stopReason
    const isFull = waiting >= deps.config().agent.max_queued_turns
    if (isFull && !isResumed && !lanes.startsAtOnce(turn.session))
      throw new AppError('unavailable', 'Too many turns are waiting', { retryAfterSecs: RETRY_AFTER_SECS })
    const ended = Promise.withResolvers<TurnResult>()
    waiting++
    const job = lanes.enter({
      lane: turn.session,
      group: TURNS_GROUP,
      async run({ permit, superseded }) {
        waiting--
        using either = turn.superseded && superseded ? signalScope([turn.superseded, superseded]) : undefined
        turn.superseded = either?.signal ?? turn.superseded ?? superseded
        await work(turn, permit, ended)
        return 'done'
      },
    })
    live.set(turn.id, { turn, ended: ended.promise })
    turn.cancellation.onCancel(() => {
      if (!job?.leave()) return
      waiting--
      void work(turn, NO_PERMIT, ended)
    })
    return ended.promise
  }

  /** Runs a turn at once, inside a job of the same lane that holds a permit. */
  function runInside(turn: LiveTurn, permit: Permit): Promise<TurnResult> {
    if (stopReason) throw stopReason
    const ended = Promise.withResolvers<TurnResult>()
    live.set(turn.id, { turn, ended: ended.promise })
    void work(turn, permit, ended)
    return ended.promise
  }

  /** Conducts the turn to its end and settles `ended`. Never rejects. */
  async function work(turn: LiveTurn, permit: Permit, ended: PromiseWithResolvers<TurnResult>): Promise<void> {
    turn.permit = permit
    try {
      await turn.kept
      ended.resolve(await conductTurn(conduct, turn, permit))
    } catch (error) {
      ended.reject(error)
    } finally {
      live.delete(turn.id)
    }
  }

  /** Keeps a turn that has entered its lane, which waits for `kept`. Rejects once such a turn is cancelled and its key released. */
  async function keep(turn: LiveTurn, kept: PromiseWithResolvers<void>): Promise<void> {
    const { id, session, owner, caller, source, text, createdAtMs, trace, idempotency, tools } = turn
    const context: TurnContext = { trace, idempotency, caller, tools }
    try {
      await store.turns.enqueue({
        id,
        sessionId: session,
        ...(owner !== undefined && { owner }),
        source,
        input: text,
        context,
        createdAtMs,
        ...(idempotency && { idempotency }),
      })
      kept.resolve()
    } catch (error) {
      kept.promise.catch(ignore)
      kept.reject(error)
      turn.cancellation.cancel(new AppError('unavailable', 'The turn could not be kept', { cause: error }))
      await releaseKey(deps, idempotency)
      throw error
    }
  }

  async function resume(): Promise<number> {
    const rows = await store.turns.unfinished(UNFINISHED_MAX)
    const lost = rows.filter(({ id }) => !live.has(id))
    for (const row of lost) enter(resumed(row, row.checkpoint), { isResumed: true }).catch(ignore)
    return lost.length
  }

  return {
    async run(request) {
      const { signal, idempotency, delivery, permit } = request
      const kept = idempotency && !delivery ? Promise.withResolvers<void>() : undefined
      const turn = createLiveTurn(making, request, kept ? { kept: kept.promise } : delivery && ofDelivery(delivery))
      const abort = () => turn.cancellation.cancel(aborted(turn.id))
      let ended: Promise<TurnResult>
      try {
        if (signal?.aborted) throw aborted(turn.id)
        ended = permit ? runInside(turn, permit) : enter(turn)
      } catch (error) {
        await releaseKey(deps, idempotency)
        throw error
      }
      signal?.addEventListener('abort', abort, { once: true })
      try {
        if (kept) {
          ended.catch(ignore)
          await keep(turn, kept)
        }
        return await ended
      } finally {
        signal?.removeEventListener('abort', abort)
      }
    },

    async accept(request) {
      const kept = Promise.withResolvers<void>()
      const turn = createLiveTurn(making, request, { kept: kept.promise, ...(request.id !== undefined && { id: request.id }) })
      try {
        if (live.has(turn.id)) throw new AppError('conflict', 'A turn of this id is known', { fields: { turn_id: turn.id } })
        // The turn enters its lane before the store is asked, so that a turn a full queue refuses is not kept.
        enter(turn).catch(ignore)
      } catch (error) {
        await releaseKey(deps, turn.idempotency)
        throw error
      }
      await keep(turn, kept)
      return turn.id
    },

    async ended(turnId) {
      await live.get(turnId)?.ended.catch(ignore)
    },

    call: (request) => runCall(conduct, request),

    resume,

    async ensureResumed(turnId) {
      if (!live.has(turnId) && !stopReason) await resume()
    },

    abort(turnId, owner) {
      const turn = live.get(turnId)?.turn
      if (!turn || (owner !== undefined && turn.owner !== owner) || turn.phase === 'ending' || turn.cancellation.reason) return false
      turn.cancellation.cancel(aborted(turnId))
      return true
    },

    async drain(timeoutMs) {
      stopReason ??= new AppError('unavailable', 'The daemon is stopping', { retryAfterSecs: RETRY_AFTER_SECS })
      const reason = stopReason
      void lanes.stop()
      const cancelAll = (turns: Iterable<Live>) => {
        for (const { turn } of turns) if (turn.phase !== 'ending') turn.cancellation.cancel(reason)
      }
      // No person is waited for: a kept turn asks again after the start, and finds an answer given meanwhile.
      cancelAll([...live.values()].filter(({ turn }) => turn.phase === 'waiting' || turn.phase === 'asking'))
      await settled(timeoutMs)
      cancelAll([...live.values()])
      await settled(SETTLE_MS)
    },

    load() {
      const turns = [...live.values()].map(({ turn }) => turn)
      return {
        running: turns.filter(({ permit }) => permit?.state === 'held').length,
        queued: turns.filter(({ permit }) => permit === undefined || permit.state === 'reacquiring').length,
        sessions: new Set(turns.flatMap(({ session }) => session ?? [])).size,
      }
    },
  }

  function resumed({ id, sessionId, owner, source, input, createdAtMs, context }: TurnRow, checkpoint: readonly ModelMessage[]): LiveTurn {
    const { trace, idempotency, caller, tools } = parseTurnContext(context)
    const client = deps.mintClient(caller ?? owner ?? source)
    const request = {
      source,
      session: sessionId,
      text: input,
      client,
      ...(trace && { trace }),
      ...(owner !== null && { owner }),
      ...(caller !== undefined && { caller }),
      ...(idempotency && { idempotency }),
      ...(tools && { tools }),
    }
    return createLiveTurn(making, request, { id, createdAtMs, kept: Promise.resolve(), checkpoint })
  }

  /** Waits until no turn is left, at most `timeoutMs`. */
  async function settled(timeoutMs: number): Promise<void> {
    const enough = new AbortController()
    const all = Promise.allSettled([...live.values()].map(({ ended }) => ended))
    await Promise.race([all, clock.sleep(timeoutMs, enough.signal)])
    enough.abort()
  }
}

const ofDelivery = ({ turnId, receivedAtMs, checkpoint }: TurnDelivery) => ({
  id: turnId,
  createdAtMs: receivedAtMs,
  kept: Promise.resolve(),
  checkpoint,
})

/** For a turn that is cancelled while it waits: it only records its end, which takes no permit. */
const NO_PERMIT: Permit = { state: 'ended', release: () => undefined, reacquire: async () => undefined }

const ignore = (): undefined => undefined
