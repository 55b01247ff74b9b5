/** The agent: accepts turns, runs each in its session's lane, and resumes the turns that a crash interrupted. */

import { BoundedMap, type LaneQueue } from '@sluice/kit'
import { Homes } from '@sluice/ownership'
import {
  AppError,
  type ClientId,
  type Clock,
  type Events,
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
import type { AgentNode } from '../cluster/agent-node.ts'
import { agentNode } from '../cluster/choose-node.ts'
import { createAskModel } from '../model/ask-model.ts'
import type { RegistryPin } from '../model/registry.ts'
import { createToolSpecs } from '../model/tool-specs.ts'
import type { ModelTestReport, ModelTestRequest } from '../model-test/report.ts'
import { ToolExecutor } from '../tools/tool-call.ts'
import { aborted } from '../turn/aborted.ts'
import type { Admission } from '../turn/admission.ts'
import type { SettingsSource } from '../turn/agent-settings.ts'
import { Budget } from '../turn/budget.ts'
import { createLiveTurn } from '../turn/create-live-turn.ts'
import { Deadlines } from '../turn/deadlines.ts'
import { createTurnIds } from '../turn/ids.ts'
import { type Links, withPerson } from '../turn/linked-principal.ts'
import { queuedTurn } from '../turn/queued-turn.ts'
import { runningTurn } from '../turn/running-turn.ts'
import { createScrub, type Scrub } from '../turn/scrub.ts'
import type { Shares } from '../turn/shares.ts'
import type { Agent, Approver, CallRequest, CallResult, RunningTurn, TurnDelivery, TurnRequest, TurnResult } from '../turn/turn.ts'
import {
  type ClusterTurnStorage,
  homeOf,
  type ResumableHome,
  type TurnHome,
  type TurnOwnership,
  type TurnStorage,
} from '../turn/turn-home.ts'
import type { LiveTurn } from '../turn/turn-scope.ts'
import { UNFINISHED_MAX } from '../turn/unfinished.ts'
import { type ConductDeps, conductTurn, releaseKey } from './conduct-turn.ts'
import { DIRECT_CALL } from './direct-call.ts'
import { LiveTurns } from './live-turns.ts'
import { resumedTurn } from './resumed-turn.ts'
import { runCall } from './run-call.ts'
import { type Refusable, TurnAdmission } from './turn-admission.ts'

export interface AgentDeps extends SettingsSource {
  readonly store: TurnStorage & Partial<Pick<Store, 'under'>>
  /** Present in a cluster: turns that clients wait for run here, whichever node owns their shard. */
  readonly cluster?: ClusterTurnStorage | undefined
  /** The ownership of this process. Absent, or not started: all turns run here. */
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
  /** Absent: no accounts are linked. */
  readonly linked?: Links
  /** Asks a person when the caller of the turn cannot. */
  readonly approve?: Approver
  /** Returns the values that tool results must not show. */
  readonly secrets?: () => readonly Secret[]
  readonly newId?: () => string
  readonly placeOf?: ConductDeps['placeOf']
  readonly identityOf?: ConductDeps['identityOf']
  readonly recall?: ConductDeps['recall']
  readonly texts?: ConductDeps['texts']
  /** Runs model calls and tools within a trace. */
  readonly within?: WithinTrace
}

/** A stored turn that waits keeps a text of at most this length in memory. A longer one is read from the store when the turn begins. */
const WAITING_TEXT_CHARS_MAX = 4096
/** The time in which aborted turns may record their end while the daemon stops. */
const RECORD_MS = 1000
/** The number of sessions whose failed summaries are remembered. */
const FAILED_SUMMARIES_MAX = 1000
/** The number of sessions whose counted tokens are remembered. */
const TOKEN_RATIOS_MAX = 1000
/** The number of files whose sizes, and refusals, are remembered. */
const FILES_KNOWN_MAX = 10_000
export const createAgent = (deps: AgentDeps): Agent => new TurnAgent(deps)

class TurnAgent implements Agent {
  readonly #deps: AgentDeps
  readonly #conduct: ConductDeps
  readonly #newId: () => string
  readonly #live: LiveTurns
  /** The shards whose turns this process resumes. */
  readonly #resumed = new Homes<ResumableHome>()
  readonly #node: AgentNode
  readonly #admission: TurnAdmission
  readonly #budget: Budget
  readonly #scrub: Scrub
  readonly load: Agent['load']

  constructor(deps: AgentDeps) {
    const { clock } = deps
    this.#deps = deps
    this.#newId = deps.newId ?? createTurnIds(clock)
    this.#scrub = createScrub(deps.secrets ?? (() => []))
    this.#admission = new TurnAdmission(deps)
    this.#live = new LiveTurns({
      ...deps,
      conduct: (turn, permit) => this.#node.conduct(turn, permit, () => conductTurn(this.#conduct, turn, permit)),
      forgotten: ({ id }) => this.#budget.ended(id),
      ended: ({ id }) => this.#node.ended(id),
    })
    this.load = () => this.#live.load()
    this.#node = agentNode(deps, {
      homes: this.#resumed,
      isStopping: () => this.#live.stopReason !== undefined,
      get: (id) => this.#live.get(id),
      abort: (id) => this.#live.abort(id),
      forget: (turn) => this.#live.forget(turn),
      resume: (home) => this.resume(home),
      resumeAll: (list) => this.#resumeAll(list),
    })
    this.#budget = new Budget(this.#node.spending.store, clock, { freshMs: this.#node.spending.freshMs, events: deps.events })
    this.#conduct = conductDeps(deps, { budget: this.#budget, scrub: this.#scrub, stopReason: () => this.#live.stopReason })
  }

  async run(asked: TurnRequest): Promise<TurnResult> {
    if (this.#deps.linked) await this.#deps.linked.refresh()
    const request = withPerson(this.#deps.linked, asked)
    const { signal, idempotency, delivery, permit } = request
    const id = delivery?.turnId ?? this.#newId()
    request.onId?.(id)
    if (this.#admission.isLimited(request)) await this.#admission.admit(id, request)
    const mustKeep = idempotency !== undefined && !delivery
    const keepsLater = mustKeep && this.#mayKeepLater(request)
    const kept = mustKeep && !keepsLater ? Promise.withResolvers<void>() : undefined
    const isDirect = this.#node.isDirect(request)
    const home = delivery?.owned ?? this.#homeOf({ id, session: request.session, isStored: mustKeep })
    if (!home) return this.#elsewhere(id, request, () => this.#node.remote.run(id, asked))
    const given = { id, home, isDirect, principal: asked.limited, ...(kept ? { kept: kept.promise } : delivery && fromDelivery(delivery)) }
    const turn = createLiveTurn(this.#deps, request, given)
    if (keepsLater) turn.keep = () => this.#keep(turn)
    const abort = () => turn.cancellation.cancel(aborted(turn.id))
    let ended: Promise<TurnResult>
    try {
      if (signal?.aborted) throw aborted(turn.id)
      ended = permit ? this.#live.runInside(turn, permit) : this.#live.enqueue(turn)
    } catch (error) {
      await this.#admission.refuse(id, request)
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

  async accept(asked: Parameters<Agent['accept']>[0]): Promise<string> {
    if (this.#deps.linked) await this.#deps.linked.refresh()
    const request = withPerson(this.#deps.linked, asked)
    const { id = this.#newId(), session } = request
    if (this.#admission.isLimited(request)) await this.#admission.admit(id, request)
    const home = this.#homeOf({ id, session, isStored: true })
    if (!home) {
      await this.#elsewhere(id, request, () => this.#node.remote.accept(id, asked))
      return id
    }
    const kept = Promise.withResolvers<void>()
    const given = { id, home, principal: asked.limited, kept: kept.promise, isDirect: this.#node.isDirect(request) }
    const turn = createLiveTurn(this.#deps, request, given)
    try {
      if (this.#live.has(turn.id)) throw new AppError('conflict', 'A turn with this id exists', { fields: { turn_id: turn.id } })
      // The turn is enqueued before it is stored, so that a turn that a full queue refuses is not stored.
      this.#live.enqueue(turn).catch(ignore)
    } catch (error) {
      await this.#admission.refuse(id, request)
      throw error
    }
    await this.#store(turn, kept)
    return turn.id
  }

  ended(turnId: string): Promise<void> {
    return this.#live.ended(turnId)
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
      this.#resumed.add(home, () => this.#lose(home))
      await home.admissions.recover(this.#live.ids())
    }
    this.#node.watch()
    return this.#resumeAll(() => home.turns.unfinished(UNFINISHED_MAX), home)
  }

  async ensureResumed(turnId: string): Promise<void> {
    if (!this.#live.has(turnId) && !this.#live.stopReason) await this.#node.resumeStored()
  }

  async look(change: StoreChange): Promise<void> {
    if (!this.#live.stopReason) await this.#node.look(change)
  }

  async leave(home: ResumableHome): Promise<void> {
    this.#resumed.delete(home)
    await this.#live.allEnded((turn) => turn.home === home)
  }

  async requestAbort(turnId: string, owner?: string): Promise<boolean> {
    return this.#live.abort(turnId, owner) || this.#node.requestAbort(turnId, owner)
  }

  abort(turnId: string, owner?: string): boolean {
    return this.#live.abort(turnId, owner)
  }

  live(): readonly RunningTurn[] {
    return this.#live.all().map(runningTurn).reverse()
  }

  async drain(timeoutMs: number): Promise<void> {
    const reason = this.#live.stop()
    this.#node.stop()
    void this.#deps.lanes.stop()
    this.#node.remote.stop(reason)
    // The stop does not wait for people: a stored turn asks again after the start and finds a decision made meanwhile.
    this.#live.cancel(({ phase }) => phase === 'waiting' || phase === 'asking', reason)
    await this.#live.allEndWithin(timeoutMs)
    this.#live.cancel(() => true, reason)
    await this.#live.allEndWithin(RECORD_MS)
  }

  /**
   * Tells whether a turn with an idempotency key may begin before it is stored. A turn that waits is stored first, so that a stop or a crash
   * leaves it to the next start, and so is a direct call, which is nothing but an effect. A turn of the built-in model then is one write
   * and one commit less: with one connection on a busy machine, the median of a turn was 9.0 instead of 12.7 ms, and its processor time
   * 1.8 instead of 2.3 ms. With 16 connections, which share their commits, it was the same.
   */
  #mayKeepLater(request: TurnRequest): boolean {
    return this.#node.mayStoreLate && request.source !== DIRECT_CALL && this.#live.startsAtOnce(request)
  }

  /** Stores a running turn with its start. When that fails, the turn is cancelled. */
  async #keep(turn: LiveTurn): Promise<void> {
    const kept = Promise.withResolvers<void>()
    turn.keep = undefined
    turn.kept = kept.promise
    await this.#store(turn, kept)
    await turn.started
  }

  /** Stores an enqueued turn, which waits for `kept`. When that fails, cancels the turn, releases its key and rejects. */
  async #store(turn: LiveTurn, kept: PromiseWithResolvers<void>): Promise<void> {
    const { turns } = turn.home
    try {
      const stored = turns.enqueue(queuedTurn({ ...turn, limited: turn.principal }))
      // A turn that begins at once is stored and started in the same commit, which leaves two of three: with one connection on a busy
      // disk, the median of a turn was 14 instead of 20 ms.
      if (turn.permit && this.#node.mayStoreLate) {
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

  #homeOf(about: Parameters<typeof homeOf>[1]): TurnHome | undefined {
    return this.#node.isDirect(about) ? this.#deps.store : homeOf(this.#deps, about)
  }

  /** Resumes what `list` lists and does not run here. Resolves to the number of turns. */
  async #resumeAll(list: () => Promise<readonly UnfinishedTurn[]>, home?: ResumableHome): Promise<number> {
    // A turn that ends while the rows are read is in them, and no longer live.
    const live = new Set(this.#live.ids())
    let resumed = 0
    const rows = await list()
    if (rows.length > 0) await this.#deps.linked?.refresh()
    for (const row of rows) {
      if (live.has(row.id) || this.#live.has(row.id)) continue
      const isDirect = this.#node.isDirect({ session: row.sessionId })
      const own = isDirect ? this.#deps.store : (home ?? this.#resumedHome(row))
      if (!own) continue
      if (isDirect) this.#node.resumes(row.id)
      const turn = resumedTurn(this.#deps, own, row, { checkpoint: row.checkpoint, isDirect })
      this.#live.enqueue(turn, { isResumed: true }).catch(ignore)
      if (!turn.permit) leaveTextInStore(turn)
      resumed++
    }
    return resumed
  }

  #resumedHome({ sessionId, id }: TurnRow): TurnHome | undefined {
    const home = this.#deps.ownership?.of(shardOfTurn(sessionId, id))
    return home && this.#resumed.has(home) ? home : undefined
  }

  /** Leaves a turn to the owner of its shard. */
  async #elsewhere<T>(id: string, request: Refusable, begin: () => Promise<T>): Promise<T> {
    if (!this.#live.stopReason) return begin()
    await this.#admission.refuse(id, request)
    throw this.#live.stopReason
  }

  /** Ends the turns under a lost lease without a record: the next owner resumes the stored ones. */
  #lose(home: ResumableHome): void {
    if (home.lease) this.#live.cancel((turn) => turn.home === home, leaseLost(home.lease.name))
  }
}

function conductDeps(
  deps: AgentDeps,
  { budget, scrub, stopReason }: Pick<ConductDeps, 'stopReason'> & { budget: Budget; scrub: Scrub },
): ConductDeps {
  const { clock, log, within = (_, work) => work(), secrets = () => [] } = deps
  const toolSpecs = createToolSpecs()
  const shared = {
    toolSpecs,
    deadlines: new Deadlines(clock),
    tokenRatios: new BoundedMap<string, number>(TOKEN_RATIOS_MAX),
    refusedFiles: new BoundedMap<string, true>(FILES_KNOWN_MAX),
    fileBytes: new BoundedMap<string, number>(FILES_KNOWN_MAX),
  }
  return {
    ...deps,
    ...shared,
    failedSummaries: new BoundedMap(FAILED_SUMMARIES_MAX),
    askModel: createAskModel({ ...shared, admission: deps.admission, budget, clock, log, scrub, within }),
    tools: new ToolExecutor({
      toolSpecs,
      events: deps.events,
      clock,
      log,
      scrub,
      secrets,
      within,
      approve: deps.approve,
      shares: deps.shares,
    }),
    stopReason,
  }
}

/** Frees the memory of a long text until the turn begins. */
function leaveTextInStore(turn: LiveTurn): void {
  if (turn.text.length <= WAITING_TEXT_CHARS_MAX) return
  turn.text = ''
  turn.isTextInStore = true
}

const fromDelivery = ({ receivedAtMs, checkpoint }: TurnDelivery) => ({
  createdAtMs: receivedAtMs,
  kept: Promise.resolve(),
  checkpoint,
})

const ignore = (): undefined => undefined
