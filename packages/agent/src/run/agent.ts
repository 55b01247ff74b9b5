/** The agent: accepts turns, runs each in its session's lane, and resumes the turns that a crash interrupted. */

import { BoundedMap, endsWithin, every, type Job, type LaneQueue, type Permit, signalScope } from '@sluice/kit'
import { concerns } from '@sluice/ownership'
import {
  AppError,
  type ClientId,
  type Clock,
  type ClusterNotice,
  type Events,
  isLeaseLost,
  type Logger,
  leaseLost,
  type Secret,
  type Store,
  type StoreChange,
  shardOfTurn,
  type TurnRow,
  type UnfinishedTurn,
  type WithinTrace,
} from '@sluice/sdk'
import { DirectTurns } from '../cluster/direct-turns.ts'
import { RemoteTurns } from '../cluster/remote-turns.ts'
import { SharedSpending } from '../cluster/shared-spending.ts'
import { createAskModel } from '../model/ask-model.ts'
import type { RegistryPin } from '../model/registry.ts'
import { createToolSpecs } from '../model/tool-specs.ts'
import type { ModelTestReport, ModelTestRequest } from '../model-test/report.ts'
import { ToolExecutor } from '../tools/tool-call.ts'
import { aborted } from '../turn/aborted.ts'
import type { Admission, LimitedClient } from '../turn/admission.ts'
import { mainSettings, type SettingsSource } from '../turn/agent-settings.ts'
import { Budget } from '../turn/budget.ts'
import { createLiveTurn, type LiveTurnDeps } from '../turn/create-live-turn.ts'
import { Deadlines } from '../turn/deadlines.ts'
import { createTurnIds } from '../turn/ids.ts'
import { queuedTurn } from '../turn/queued-turn.ts'
import { runningTurn } from '../turn/running-turn.ts'
import { createScrub, type Scrub } from '../turn/scrub.ts'
import type { Shares } from '../turn/shares.ts'
import type { Agent, Approver, CallRequest, CallResult, RunningTurn, TurnDelivery, TurnRequest, TurnResult } from '../turn/turn.ts'
import { parseTurnContext } from '../turn/turn-context.ts'
import {
  type ClusterTurnStorage,
  homeOf,
  isDirectTurn,
  type ResumableHome,
  type TurnHome,
  type TurnOwnership,
  type TurnStorage,
} from '../turn/turn-home.ts'
import type { LiveTurn } from '../turn/turn-scope.ts'
import { type ConductDeps, conductTurn, releaseKey } from './conduct-turn.ts'
import { DIRECT_CALL } from './direct-call.ts'
import { runCall } from './run-call.ts'

export interface AgentDeps extends SettingsSource {
  readonly store: TurnStorage & Partial<Pick<Store, 'under'>>
  /** Present in a cluster: turns that clients wait for run here, whoever owns their shard. */
  readonly cluster?: ClusterTurnStorage | undefined
  /** What this process owns. Absent, or not started: all turns run here. */
  readonly ownership?: TurnOwnership
  /** The queue of turns, shared with the inbox worker, so that one bound holds for all turns. */
  readonly lanes: LaneQueue
  /** Pins the registry in force of an agent for one turn. */
  readonly pinRegistry: (agent: string) => RegistryPin
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
  /** Returns the client id of a resumed turn: the same id for the same caller. */
  readonly mintClient: (caller: string) => ClientId
  /** The limits of clients. Absent: no client has one. */
  readonly admission?: Admission
  /** What each client holds at once. Absent: no client has a share. */
  readonly shares?: Shares
  /** Asks a person when the caller of the turn cannot. */
  readonly approve?: Approver
  /** Returns the values that tool results must not show. */
  readonly secrets?: () => readonly Secret[]
  readonly newId?: () => string
  readonly placeOf?: ConductDeps['placeOf']
  readonly identityOf?: ConductDeps['identityOf']
  readonly recall?: ConductDeps['recall']
  /** Runs model calls and tools within a trace. */
  readonly within?: WithinTrace
}

/** More turns than can ever have been accepted: twice the largest `max_queued_turns`, and the largest `max_concurrent_turns`. */
const UNFINISHED_MAX = 201_024
/** A stored turn that waits keeps a text of at most this length in memory. A longer one is read from the store when the turn begins. */
const WAITING_TEXT_CHARS_MAX = 4096
/** The time in which aborted turns may record their end while the daemon stops. */
const RECORD_MS = 1000
/** How long a node of a cluster uses what it has read of the spending of all nodes. */
const SPENDING_FRESH_MS = 2000
/** How often a node of a cluster looks for turns that others have left, and requests to abort its own. */
const LOOK_EVERY_MS = 1000
const RETRY_AFTER_SECS = 5
/** The number of sessions whose failed summaries are remembered. */
const FAILED_SUMMARIES_MAX = 1000
/** The number of sessions whose counted tokens are remembered. */
const TOKEN_RATIOS_MAX = 1000
/** The number of files whose sizes, and refusals, are remembered. */
const FILES_KNOWN_MAX = 10_000
/** The lane queue's group for turns that no client asked for. */
const TURNS_GROUP = 'turns'

/** The permit of a turn that is cancelled while it waits: recording its end takes no permit. */
const NO_PERMIT: Permit = { state: 'ended', release: () => undefined, reacquire: async () => undefined }

/** The part of a request that matters when the turn is refused. */
type Refusable = Pick<TurnRequest, 'limited' | 'delivery' | 'idempotency' | 'session'>

interface Live {
  readonly turn: LiveTurn
  readonly ended: Promise<unknown>
}

export const createAgent = (deps: AgentDeps): Agent => new TurnAgent(deps)

class TurnAgent implements Agent {
  readonly #deps: AgentDeps
  readonly #conduct: ConductDeps
  readonly #making: LiveTurnDeps
  readonly #newId: () => string
  /** Waiting and running turns; bounded by `max_queued_turns`, and by `UNFINISHED_MAX` after a crash. */
  readonly #live = new Map<string, Live>()
  /** The number of turns in the queue that have not started: those of operators, whom no other client may shut out, and all others. */
  readonly #waiting = { operators: 0, others: 0 }
  /** The shards whose turns this process resumes. */
  readonly #resumed = new Set<ResumableHome>()
  readonly #remote: RemoteTurns
  readonly #direct: DirectTurns | undefined
  /** The live turns whose end other nodes wait for. */
  readonly #followed = new Set<string>()
  #lastLook: Promise<unknown> = Promise.resolve()
  #nextLook: Promise<void> | undefined
  #isWatching = false
  readonly #stopped = new AbortController()
  readonly #budget: Budget
  readonly #scrub: Scrub
  #stopReason: AppError | undefined

  constructor(deps: AgentDeps) {
    const { store, clock, log, within = (_, work) => work(), secrets = () => [] } = deps
    const deadlines = new Deadlines(clock)
    const scrub = createScrub(secrets)
    this.#scrub = scrub
    this.#deps = deps
    this.#newId = deps.newId ?? createTurnIds(clock)
    this.#making = { clock, log }
    this.#budget = deps.cluster
      ? new Budget(new SharedSpending(store.turns, clock), clock, SPENDING_FRESH_MS)
      : new Budget(store.turns, clock)
    this.#remote = new RemoteTurns({ store, clock, log, notices: deps.cluster?.notices })
    const { under } = store
    this.#direct =
      deps.cluster && under && new DirectTurns({ turns: deps.cluster.turns, store: { ...store, under }, remote: this.#remote, log })
    deps.cluster?.notices.listen((notice) => this.#heard(notice))
    const known = {
      tokenRatios: new BoundedMap<string, number>(TOKEN_RATIOS_MAX),
      refusedFiles: new BoundedMap<string, true>(FILES_KNOWN_MAX),
      fileBytes: new BoundedMap<string, number>(FILES_KNOWN_MAX),
    }
    const toolSpecs = createToolSpecs()
    this.#conduct = {
      ...deps,
      ...known,
      toolSpecs,
      deadlines,
      failedSummaries: new BoundedMap(FAILED_SUMMARIES_MAX),
      askModel: createAskModel({
        admission: deps.admission,
        budget: this.#budget,
        clock,
        deadlines,
        log,
        scrub,
        within,
        ...known,
        toolSpecs,
      }),
      tools: new ToolExecutor({ toolSpecs, events: deps.events, clock, log, scrub, secrets, within, approve: deps.approve }),
      stopReason: () => this.#stopReason,
    }
  }

  async run(request: TurnRequest): Promise<TurnResult> {
    const { signal, idempotency, delivery, permit } = request
    const id = delivery?.turnId ?? this.#newId()
    if (this.#isLimited(request)) await this.#admit(id, request)
    const mustKeep = idempotency !== undefined && !delivery
    const keepsLater = mustKeep && this.#mayKeepLater(request)
    const kept = mustKeep && !keepsLater ? Promise.withResolvers<void>() : undefined
    const isDirect = this.#isDirect(request)
    const home = delivery?.owned ?? this.#homeOf({ id, session: request.session, isStored: mustKeep })
    if (!home) return this.#elsewhere(id, request, (turns) => turns.run(id, request))
    const given = { id, home, isDirect, ...(kept ? { kept: kept.promise } : delivery && fromDelivery(delivery)) }
    const turn = createLiveTurn(this.#making, request, given)
    if (keepsLater) turn.keep = () => this.#keep(turn)
    const abort = () => turn.cancellation.cancel(aborted(turn.id))
    let ended: Promise<TurnResult>
    try {
      if (signal?.aborted) throw aborted(turn.id)
      ended = permit ? this.#runInside(turn, permit) : this.#enqueue(turn)
    } catch (error) {
      await this.#refuse(id, request)
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
    const { id = this.#newId(), session } = request
    if (this.#isLimited(request)) await this.#admit(id, request)
    const home = this.#homeOf({ id, session, isStored: true })
    if (!home) {
      await this.#elsewhere(id, request, (turns) => turns.accept(id, request))
      return id
    }
    const kept = Promise.withResolvers<void>()
    const turn = createLiveTurn(this.#making, request, { id, home, kept: kept.promise, isDirect: this.#isDirect(request) })
    try {
      if (this.#live.has(turn.id)) throw new AppError('conflict', 'A turn with this id exists', { fields: { turn_id: turn.id } })
      // The turn is enqueued before it is stored, so that a turn that a full queue refuses is not stored.
      this.#enqueue(turn).catch(ignore)
    } catch (error) {
      await this.#refuse(id, request)
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

  async testModel(request: ModelTestRequest): Promise<ModelTestReport> {
    const { testConfiguredModel } = await import('../model-test/test-configured-model.ts')
    return testConfiguredModel({ ...this.#deps, budget: this.#budget, scrub: this.#scrub, newId: this.#newId }, request)
  }

  async resume(home: ResumableHome): Promise<number> {
    if (!this.#resumed.has(home)) {
      this.#resumed.add(home)
      await home.admissions.recover([...this.#live.keys()])
      home.lease?.lost.addEventListener('abort', () => this.#lose(home), { once: true })
    }
    if (this.#direct) this.#watch()
    return this.#resumeAll(() => home.turns.unfinished(UNFINISHED_MAX), home)
  }

  async ensureResumed(turnId: string): Promise<void> {
    if (this.#live.has(turnId) || this.#stopReason) return
    if (this.#direct) return this.#lookAround()
    await Promise.all([...this.#resumed].map((home) => this.resume(home)))
  }

  async look(change: StoreChange): Promise<void> {
    if (this.#stopReason) return
    if (this.#direct) return this.#lookAround()
    const concerned = [...this.#resumed].filter(({ lease }) => !lease || concerns(change, { lease }))
    // All at once, so that the store can read the turns of all shards together.
    await Promise.all(concerned.map((home) => this.#lookAt(home)))
    await this.#remote.look()
  }

  async leave(home: ResumableHome): Promise<void> {
    this.#resumed.delete(home)
    const live = [...this.#live.values()].filter(({ turn }) => turn.home === home)
    await Promise.allSettled(live.map(({ ended }) => ended))
  }

  async requestAbort(turnId: string, owner?: string): Promise<boolean> {
    const { ownership, store } = this.#deps
    if (this.abort(turnId, owner)) return true
    if (this.#direct) return this.#requestAbort(turnId, owner)
    if (!ownership?.isStarted || ownership.ownsAll) return false
    const row = await store.turns.get(turnId)
    if (!row || ownership.of(shardOfTurn(row.sessionId, row.id))) return false
    return store.turns.requestAbort(turnId, owner)
  }

  abort(turnId: string, owner?: string): boolean {
    const turn = this.#live.get(turnId)?.turn
    if (!turn || (owner !== undefined && turn.owner !== owner) || turn.phase === 'ending' || turn.cancellation.reason) return false
    turn.cancellation.cancel(aborted(turnId))
    return true
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#stopReason ??= new AppError('unavailable', 'The daemon is stopping', { retryAfterSecs: RETRY_AFTER_SECS })
    this.#stopped.abort()
    void this.#deps.lanes.stop()
    this.#remote.stop(this.#stopReason)
    // The stop does not wait for people: a stored turn asks again after the start and finds a decision made meanwhile.
    this.#cancelLive(({ phase }) => phase === 'waiting' || phase === 'asking', this.#stopReason)
    await this.#allEnded(timeoutMs)
    this.#cancelLive(() => true, this.#stopReason)
    await this.#allEnded(RECORD_MS)
  }

  live(): readonly RunningTurn[] {
    return [...this.#live.values()].map(({ turn }) => runningTurn(turn)).reverse()
  }

  load(): { readonly running: number; readonly queued: number; readonly sessions: number } {
    const turns = [...this.#live.values()].map(({ turn }) => turn)
    return {
      running: turns.filter(({ permit }) => permit?.state === 'held').length,
      queued: turns.filter(({ permit }) => permit === undefined || permit.state === 'reacquiring').length,
      sessions: new Set(turns.flatMap(({ session }) => session ?? [])).size,
    }
  }

  /**
   * Enqueues a turn in its session's lane. Throws `unavailable` when the daemon stops. A new turn is refused with `share_used` when too
   * many turns of its client wait, also for a person, and with `unavailable` when it would have to wait in a full queue.
   */
  #enqueue(turn: LiveTurn, { isResumed = false } = {}): Promise<TurnResult> {
    if (this.#stopReason) throw this.#stopReason
    const { lanes } = this.#deps
    const place = this.#placeOf(turn)
    const endWait = this.#beginWait(turn, { isResumed, startsAtOnce: lanes.startsAtOnce({ ...place, lane: turn.session }) })
    const ended = Promise.withResolvers<TurnResult>()
    const job = lanes.enter({
      ...place,
      // A turn that was left behind goes before later ones of its session, which wait for it in their lane.
      lane: isResumed && turn.isDirect ? null : turn.session,
      run: async (attempt) => {
        endWait()
        using either = turn.superseded && attempt.superseded ? signalScope([turn.superseded, attempt.superseded]) : undefined
        if (either) turn.superseded = either.signal
        turn.inLane = attempt
        await this.#work(turn, attempt.permit, ended)
        return 'done'
      },
    })
    this.#live.set(turn.id, { turn, ended: ended.promise })
    turn.cancellation.onCancel(() => {
      if (!job?.leave()) return
      endWait()
      void this.#work(turn, NO_PERMIT, ended)
    })
    return ended.promise
  }

  /**
   * The members of a job that decide when it starts: clients take turns, and each uses at most its share. Operators go first, and so do turns
   * that no client asked for, such as steps of procedures, which have limits of their own.
   */
  #placeOf({ limited }: Pick<TurnRequest, 'limited'>): Pick<Job, 'group' | 'isPrior' | 'sharing'> {
    if (!limited) return { group: TURNS_GROUP, isPrior: true }
    return { group: limited.client, isPrior: isOperator(limited), sharing: this.#deps.shares?.runningOf(limited) }
  }

  /** Counts a turn until the returned function is called, once. Throws when the turn is refused. */
  #beginWait({ limited, text }: LiveTurn, { isResumed, startsAtOnce }: { isResumed: boolean; startsAtOnce: boolean }): () => void {
    const { shares } = this.#deps
    const kind = isOperator(limited) ? 'operators' : 'others'
    if (!isResumed && !startsAtOnce && this.#waiting[kind] >= mainSettings(this.#deps).agent.max_queued_turns)
      throw new AppError('unavailable', 'Too many turns are waiting', { retryAfterSecs: RETRY_AFTER_SECS })
    const bytes = limited && shares && !startsAtOnce ? Buffer.byteLength(text) : 0
    const held = limited && (isResumed ? shares?.countWaiting(limited, bytes) : shares?.takeWaiting(limited, bytes))
    this.#waiting[kind]++
    return () => {
      this.#waiting[kind]--
      held?.release()
    }
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
      const conduct = () => conductTurn(this.#conduct, turn, permit)
      const gaveUp = (): void => {
        this.#forget(turn)
        this.#lookAround().catch(ignore)
      }
      ended.resolve(await (turn.isDirect && this.#direct ? this.#direct.conduct(turn, permit, conduct, gaveUp) : conduct()))
    } catch (error) {
      ended.reject(error)
    } finally {
      this.#forget(turn)
      if (this.#followed.delete(turn.id)) this.#deps.cluster?.notices.send({ what: 'ended', turn: turn.id })
    }
  }

  /**
   * Tells whether a turn with an idempotency key may begin before it is stored. A turn that waits is stored first, so that a stop or a crash
   * leaves it to the next start, and so is a direct call, which is nothing but an effect. A turn of the built-in model then is one write
   * and one commit less: with one connection on a busy machine, the median of a turn was 9.0 instead of 12.7 ms, and its processor time
   * 1.8 instead of 2.3 ms. With 16 connections, which share their commits, it was the same.
   */
  #mayKeepLater(request: TurnRequest): boolean {
    const { lanes, cluster } = this.#deps
    return !cluster && request.source !== DIRECT_CALL && lanes.startsAtOnce({ ...this.#placeOf(request), lane: request.session })
  }

  /** Stores a running turn with its start. When that fails, the turn is cancelled. */
  async #keep(turn: LiveTurn): Promise<void> {
    const kept = Promise.withResolvers<void>()
    turn.keep = undefined
    turn.kept = kept.promise
    await this.#store(turn, kept)
    await turn.started
  }

  /** Another attempt at the turn may be live. */
  #forget(turn: LiveTurn): void {
    if (this.#live.get(turn.id)?.turn !== turn) return
    this.#live.delete(turn.id)
    this.#budget.ended(turn.id)
  }

  /** Stores an enqueued turn, which waits for `kept`. When that fails, cancels the turn, releases its key and rejects. */
  async #store(turn: LiveTurn, kept: PromiseWithResolvers<void>): Promise<void> {
    const { turns } = turn.home
    try {
      const stored = turns.enqueue(queuedTurn(turn))
      // A turn that begins at once is stored and started in the same commit, which leaves two of three: with one connection on a busy
      // disk, the median of a turn was 14 instead of 20 ms.
      if (turn.permit && !this.#deps.cluster) {
        turn.started = turns.start(turn.id)
        turn.started.catch(ignore)
      }
      await stored
      if (!turn.permit) leaveTextInStore(turn)
      kept.resolve()
    } catch (error) {
      kept.promise.catch(ignore)
      kept.reject(error)
      turn.cancellation.cancel(new AppError('unavailable', 'The turn could not be stored', { cause: error }))
      await releaseKey(this.#deps, turn.idempotency)
      throw error
    }
  }

  #isDirect({ session, delivery }: Pick<TurnRequest, 'session' | 'delivery'>): boolean {
    return this.#direct !== undefined && !delivery && isDirectTurn(session)
  }

  #homeOf(about: Parameters<typeof homeOf>[1]): TurnHome | undefined {
    return this.#isDirect(about) ? this.#deps.store : homeOf(this.#deps, about)
  }

  /** Resumes what `list` lists and does not run here. Resolves to the number of turns. */
  async #resumeAll(list: () => Promise<readonly UnfinishedTurn[]>, home?: ResumableHome): Promise<number> {
    // A turn that ends while the rows are read is in them, and no longer live.
    const live = new Set(this.#live.keys())
    let resumed = 0
    for (const row of await list()) {
      if (live.has(row.id) || this.#live.has(row.id)) continue
      const isDirect = this.#isDirect({ session: row.sessionId })
      const own = isDirect ? this.#deps.store : (home ?? this.#resumedHome(row))
      if (!own) continue
      if (isDirect) this.#deps.cluster?.turns.leftBehind.add(row.id)
      const turn = this.#resumedTurn(own, row, { checkpoint: row.checkpoint, isDirect })
      this.#enqueue(turn, { isResumed: true }).catch(ignore)
      if (!turn.permit) leaveTextInStore(turn)
      resumed++
    }
    return resumed
  }

  #resumedHome({ sessionId, id }: TurnRow): TurnHome | undefined {
    const home = this.#deps.ownership?.of(shardOfTurn(sessionId, id))
    return home && this.#resumed.has(home) ? home : undefined
  }

  /**
   * In a cluster: resumes turns that were left behind, follows requests to abort, and finds the ends of turns of other nodes. Callers share
   * a look that has not begun.
   */
  #lookAround(): Promise<void> {
    this.#nextLook ??= this.#lastLook.then(() => {
      this.#nextLook = undefined
      const look = this.#look()
      this.#lastLook = look.catch(ignore)
      return look
    })
    return this.#nextLook
  }

  async #look(): Promise<void> {
    const { cluster } = this.#deps
    if (!cluster || this.#stopReason) return
    await this.#resumeLeft(cluster.turns)
    for (const id of await cluster.turns.abortsRequested()) this.abort(id)
    await this.#remote.look()
  }

  /** Resumes turns that no process runs, and forgets those that have ended meanwhile. */
  async #resumeLeft({ leftBehind, abandoned }: ClusterTurnStorage['turns']): Promise<void> {
    const known = [...leftBehind]
    if (this.#resumed.size === 0 && known.length === 0) return
    await this.#resumeAll(async () => {
      const rows = await abandoned(UNFINISHED_MAX)
      const unfinished = new Set(rows.map(({ id }) => id))
      for (const id of known) if (!unfinished.has(id) && !this.#live.has(id)) leftBehind.delete(id)
      return rows
    })
  }

  /** A node that dies writes nothing that others would notice. */
  #watch(): void {
    if (this.#isWatching) return
    this.#isWatching = true
    void every(this.#deps.clock, LOOK_EVERY_MS, this.#stopped.signal, () => {
      this.#lookAround().catch(ignore)
    })
  }

  #heard(notice: ClusterNotice): void {
    if (this.#stopReason) return
    if (notice.what === 'abort') this.abort(notice.turn)
    else if (notice.what === 'turn' && this.#deps.ownership?.of(notice.shard)) this.#lookAround().catch(ignore)
    else if (notice.what === 'follow' && this.#live.has(notice.turn)) this.#followed.add(notice.turn)
    else if (notice.what === 'ended') this.#remote.ended(notice.turn).catch(ignore)
  }

  async #requestAbort(turnId: string, owner: string | undefined): Promise<boolean> {
    const { cluster, store } = this.#deps
    const live = this.#live.get(turnId)?.turn
    if (live && !isLeaseLost(live.cancellation.reason)) return false
    const isAsked = (await store.turns.requestAbort(turnId, owner)) || (await cluster?.turns.requestAbort(turnId, owner)) === true
    if (isAsked) cluster?.notices.send({ what: 'abort', turn: turnId })
    return isAsked
  }

  /** Leaves a turn to the owner of its shard. */
  async #elsewhere<T>(id: string, request: Refusable, begin: (turns: RemoteTurns) => Promise<T>): Promise<T> {
    if (!this.#stopReason) return begin(this.#remote)
    await this.#refuse(id, request)
    throw this.#stopReason
  }

  #isLimited({ limited, delivery }: Refusable): boolean {
    return limited !== undefined && !delivery && this.#deps.admission?.hasLimits(limited) === true
  }

  /** Counts the turn for its client. Throws `rate_limited`, and releases the key, when a limit refuses it. */
  async #admit(id: string, { limited, idempotency, session }: Refusable): Promise<void> {
    try {
      if (limited) await this.#deps.admission?.require(limited, { id, shard: shardOfTurn(session, id) })
    } catch (error) {
      await releaseKey(this.#deps, idempotency)
      throw error
    }
  }

  /** Takes back what was done for a turn that is not accepted. Never rejects. */
  async #refuse(id: string, request: Refusable): Promise<void> {
    await releaseKey(this.#deps, request.idempotency)
    if (!this.#isLimited(request)) return
    await this.#deps.admission?.cancel(id).catch((error: unknown) => this.#deps.log.error('admission not taken back', { turn: id, error }))
  }

  /** Ends the turns under a lost lease without a record: the next owner resumes those that are stored. */
  #lose(home: ResumableHome): void {
    this.#resumed.delete(home)
    if (home.lease) this.#cancelLive((turn) => turn.home === home, leaseLost(home.lease.name))
  }

  #resumedTurn(home: TurnHome, row: TurnRow, more: Pick<LiveTurn, 'checkpoint' | 'isDirect'>): LiveTurn {
    const { id, agent, sessionId, owner, source, input, createdAtMs, context } = row
    const { trace, idempotency, caller, limited, tools } = parseTurnContext(context)
    const request = {
      source,
      agent,
      session: sessionId,
      text: input,
      client: this.#deps.mintClient(caller ?? owner ?? source),
      ...(trace && { trace }),
      ...(owner !== null && { owner }),
      ...(caller !== undefined && { caller }),
      ...(limited && { limited }),
      ...(idempotency && { idempotency }),
      ...(tools && { tools }),
    }
    return createLiveTurn(this.#making, request, { id, home, createdAtMs, kept: Promise.resolve(), ...more })
  }

  async #lookAt(home: ResumableHome): Promise<void> {
    for (const id of await home.turns.abortsRequested()) this.abort(id)
    if (this.#deps.ownership?.ownsAll === false && this.#resumed.has(home)) await this.resume(home)
  }

  #cancelLive(isMeant: (turn: LiveTurn) => boolean, reason: AppError): void {
    for (const { turn } of [...this.#live.values()]) if (turn.phase !== 'ending' && isMeant(turn)) turn.cancellation.cancel(reason)
  }

  /** Waits until every live turn has ended, at most `timeoutMs`. */
  async #allEnded(timeoutMs: number): Promise<void> {
    await endsWithin(Promise.allSettled([...this.#live.values()].map(({ ended }) => ended)), timeoutMs, this.#deps.clock)
  }
}

/** Frees the memory of a long text until the turn begins. */
function leaveTextInStore(turn: LiveTurn): void {
  if (turn.text.length <= WAITING_TEXT_CHARS_MAX) return
  turn.text = ''
  turn.isTextInStore = true
}

const isOperator = (client: LimitedClient | undefined): boolean => client?.standing === 'operator'

const fromDelivery = ({ receivedAtMs, checkpoint }: TurnDelivery) => ({
  createdAtMs: receivedAtMs,
  kept: Promise.resolve(),
  checkpoint,
})

const ignore = (): undefined => undefined
