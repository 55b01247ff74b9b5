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
import { mainSettings, type SettingsSource } from './agent-settings.ts'
import { createAskModel } from './ask-model.ts'
import { Budget } from './budget.ts'
import { type ConductDeps, conductTurn, releaseKey, type TurnStorage } from './conduct-turn.ts'
import { createLiveTurn, type LiveTurnDeps } from './create-live-turn.ts'
import { Deadlines } from './deadlines.ts'
import { createTurnIds } from './ids.ts'
import type { RegistryPin } from './registry.ts'
import { runCall } from './run-call.ts'
import { createScrub } from './scrub.ts'
import { ToolExecutor } from './tool-call.ts'
import { createToolSpecs } from './tool-specs.ts'
import type { Agent, Approver, CallRequest, CallResult, TurnDelivery, TurnRequest, TurnResult } from './turn.ts'
import { parseTurnContext, type TurnContext } from './turn-context.ts'
import type { LiveTurn } from './turn-scope.ts'

export interface AgentDeps extends SettingsSource {
  readonly store: TurnStorage
  /** The queue of turns, shared with the inbox worker, so that one bound holds for all turns. */
  readonly lanes: LaneQueue
  /** Pins the registry in force of an agent for one turn. */
  readonly pinRegistry: (agent: string) => RegistryPin
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
  /** Returns the client id of a resumed turn: the same id for the same caller. */
  readonly mintClient: (caller: string) => ClientId
  /** Asks a person when the caller of the turn cannot. */
  readonly approve?: Approver
  /** Returns the values that tool results must not show. */
  readonly secrets?: () => readonly Secret[]
  readonly newId?: () => string
  /** Runs model calls and tools within a trace. */
  readonly within?: WithinTrace
}

/** More turns than can ever have been accepted: the largest `max_queued_turns` and `max_concurrent_turns` together. */
const UNFINISHED_MAX = 101_024
/** The time in which aborted turns may record their end while the daemon stops. */
const RECORD_MS = 1000
const RETRY_AFTER_SECS = 5
/** The lane queue's group for all turns except the turns of messages. */
const TURNS_GROUP = 'turns'

/** The permit of a turn that is cancelled while it waits: recording its end takes no permit. */
const NO_PERMIT: Permit = { state: 'ended', release: () => undefined, reacquire: async () => undefined }

interface Live {
  readonly turn: LiveTurn
  readonly ended: Promise<unknown>
}

export const createAgent = (deps: AgentDeps): Agent => new TurnAgent(deps)

class TurnAgent implements Agent {
  readonly #deps: AgentDeps
  readonly #conduct: ConductDeps
  readonly #making: LiveTurnDeps
  /** Waiting and running turns; bounded by `max_queued_turns`, and by `UNFINISHED_MAX` after a crash. */
  readonly #live = new Map<string, Live>()
  /** The number of turns in the queue that have not started. */
  #waiting = 0
  #stopReason: AppError | undefined

  constructor(deps: AgentDeps) {
    const { store, clock, log, within = (_, work) => work(), secrets = () => [] } = deps
    const deadlines = new Deadlines(clock)
    const scrub = createScrub(secrets)
    this.#deps = deps
    this.#making = { clock, log, newId: deps.newId ?? createTurnIds(clock) }
    this.#conduct = {
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
      stopReason: () => this.#stopReason,
    }
  }

  async run(request: TurnRequest): Promise<TurnResult> {
    const { signal, idempotency, delivery, permit } = request
    const kept = idempotency && !delivery ? Promise.withResolvers<void>() : undefined
    const turn = createLiveTurn(this.#making, request, kept ? { kept: kept.promise } : delivery && fromDelivery(delivery))
    const abort = () => turn.cancellation.cancel(aborted(turn.id))
    let ended: Promise<TurnResult>
    try {
      if (signal?.aborted) throw aborted(turn.id)
      ended = permit ? this.#runInside(turn, permit) : this.#enqueue(turn)
    } catch (error) {
      await releaseKey(this.#deps, idempotency)
      throw error
    }
    signal?.addEventListener('abort', abort, { once: true })
    try {
      if (kept) {
        ended.catch(ignore)
        await this.#store(turn, kept)
      }
      return await ended
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  async accept(request: Parameters<Agent['accept']>[0]): Promise<string> {
    const kept = Promise.withResolvers<void>()
    const turn = createLiveTurn(this.#making, request, { kept: kept.promise, ...(request.id !== undefined && { id: request.id }) })
    try {
      if (this.#live.has(turn.id)) throw new AppError('conflict', 'A turn with this id exists', { fields: { turn_id: turn.id } })
      // The turn is enqueued before it is stored, so that a turn that a full queue refuses is not stored.
      this.#enqueue(turn).catch(ignore)
    } catch (error) {
      await releaseKey(this.#deps, turn.idempotency)
      throw error
    }
    await this.#store(turn, kept)
    return turn.id
  }

  async ended(turnId: string): Promise<void> {
    await this.#live.get(turnId)?.ended.catch(ignore)
  }

  call(request: CallRequest): Promise<CallResult> {
    return runCall(this.#conduct, request)
  }

  async resume(): Promise<number> {
    const rows = await this.#deps.store.turns.unfinished(UNFINISHED_MAX)
    const interrupted = rows.filter(({ id }) => !this.#live.has(id))
    for (const row of interrupted) this.#enqueue(this.#resumedTurn(row, row.checkpoint), { isResumed: true }).catch(ignore)
    return interrupted.length
  }

  async ensureResumed(turnId: string): Promise<void> {
    if (!this.#live.has(turnId) && !this.#stopReason) await this.resume()
  }

  abort(turnId: string, owner?: string): boolean {
    const turn = this.#live.get(turnId)?.turn
    if (!turn || (owner !== undefined && turn.owner !== owner) || turn.phase === 'ending' || turn.cancellation.reason) return false
    turn.cancellation.cancel(aborted(turnId))
    return true
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#stopReason ??= new AppError('unavailable', 'The daemon is stopping', { retryAfterSecs: RETRY_AFTER_SECS })
    void this.#deps.lanes.stop()
    // The stop does not wait for people: a stored turn asks again after the start and finds a decision made meanwhile.
    this.#cancelLive(({ phase }) => phase === 'waiting' || phase === 'asking', this.#stopReason)
    await this.#allEnded(timeoutMs)
    this.#cancelLive(() => true, this.#stopReason)
    await this.#allEnded(RECORD_MS)
  }

  load(): { readonly running: number; readonly queued: number; readonly sessions: number } {
    const turns = [...this.#live.values()].map(({ turn }) => turn)
    return {
      running: turns.filter(({ permit }) => permit?.state === 'held').length,
      queued: turns.filter(({ permit }) => permit === undefined || permit.state === 'reacquiring').length,
      sessions: new Set(turns.flatMap(({ session }) => session ?? [])).size,
    }
  }

  /** Enqueues a turn in its session's lane. Throws `unavailable` when the daemon stops, or when the queue is full and the turn is new. */
  #enqueue(turn: LiveTurn, { isResumed = false } = {}): Promise<TurnResult> {
    if (this.#stopReason) throw this.#stopReason
    const { lanes } = this.#deps
    const isFull = this.#waiting >= mainSettings(this.#deps).agent.max_queued_turns
    if (isFull && !isResumed && !lanes.startsAtOnce(turn.session))
      throw new AppError('unavailable', 'Too many turns are waiting', { retryAfterSecs: RETRY_AFTER_SECS })
    const ended = Promise.withResolvers<TurnResult>()
    this.#waiting++
    const job = lanes.enter({
      lane: turn.session,
      group: TURNS_GROUP,
      run: async ({ permit, superseded }) => {
        this.#waiting--
        using either = turn.superseded && superseded ? signalScope([turn.superseded, superseded]) : undefined
        turn.superseded = either?.signal ?? turn.superseded ?? superseded
        await this.#work(turn, permit, ended)
        return 'done'
      },
    })
    this.#live.set(turn.id, { turn, ended: ended.promise })
    turn.cancellation.onCancel(() => {
      if (!job?.leave()) return
      this.#waiting--
      void this.#work(turn, NO_PERMIT, ended)
    })
    return ended.promise
  }

  /** Runs a turn at once, inside a job of the same lane that holds a permit. */
  #runInside(turn: LiveTurn, permit: Permit): Promise<TurnResult> {
    if (this.#stopReason) throw this.#stopReason
    const ended = Promise.withResolvers<TurnResult>()
    this.#live.set(turn.id, { turn, ended: ended.promise })
    void this.#work(turn, permit, ended)
    return ended.promise
  }

  /** Conducts the turn to its end and settles `ended`. Never rejects. */
  async #work(turn: LiveTurn, permit: Permit, ended: PromiseWithResolvers<TurnResult>): Promise<void> {
    turn.permit = permit
    try {
      await turn.kept
      ended.resolve(await conductTurn(this.#conduct, turn, permit))
    } catch (error) {
      ended.reject(error)
    } finally {
      this.#live.delete(turn.id)
    }
  }

  /** Stores an enqueued turn, which waits for `kept`. When that fails, cancels the turn, releases its key and rejects. */
  async #store(turn: LiveTurn, kept: PromiseWithResolvers<void>): Promise<void> {
    const { id, agent, session, owner, caller, source, text, createdAtMs, trace, idempotency, tools } = turn
    const context: TurnContext = { trace, idempotency, caller, tools }
    try {
      await this.#deps.store.turns.enqueue({
        id,
        sessionId: session,
        agent,
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
      turn.cancellation.cancel(new AppError('unavailable', 'The turn could not be stored', { cause: error }))
      await releaseKey(this.#deps, idempotency)
      throw error
    }
  }

  #resumedTurn(row: TurnRow, checkpoint: readonly ModelMessage[]): LiveTurn {
    const { id, agent, sessionId, owner, source, input, createdAtMs, context } = row
    const { trace, idempotency, caller, tools } = parseTurnContext(context)
    const request = {
      source,
      agent,
      session: sessionId,
      text: input,
      client: this.#deps.mintClient(caller ?? owner ?? source),
      ...(trace && { trace }),
      ...(owner !== null && { owner }),
      ...(caller !== undefined && { caller }),
      ...(idempotency && { idempotency }),
      ...(tools && { tools }),
    }
    return createLiveTurn(this.#making, request, { id, createdAtMs, kept: Promise.resolve(), checkpoint })
  }

  #cancelLive(isMeant: (turn: LiveTurn) => boolean, reason: AppError): void {
    for (const { turn } of [...this.#live.values()]) if (turn.phase !== 'ending' && isMeant(turn)) turn.cancellation.cancel(reason)
  }

  /** Waits until every live turn has ended, at most `timeoutMs`. */
  async #allEnded(timeoutMs: number): Promise<void> {
    const enough = new AbortController()
    const all = Promise.allSettled([...this.#live.values()].map(({ ended }) => ended))
    await Promise.race([all, this.#deps.clock.sleep(timeoutMs, enough.signal)])
    enough.abort()
  }
}

const fromDelivery = ({ turnId, receivedAtMs, checkpoint }: TurnDelivery) => ({
  id: turnId,
  createdAtMs: receivedAtMs,
  kept: Promise.resolve(),
  checkpoint,
})

const ignore = (): undefined => undefined
