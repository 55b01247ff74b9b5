/** The turns that wait and run in this process, each in the lane of its session. */
import { countedAs } from '@sluice/config'
import { endsWithin, type Job, type LaneQueue, type Permit, signalScope } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import { aborted } from '../turn/aborted.ts'
import type { LimitedClient } from '../turn/admission.ts'
import { mainSettings, type SettingsSource } from '../turn/agent-settings.ts'
import type { Shares } from '../turn/shares.ts'
import type { TurnRequest, TurnResult } from '../turn/turn.ts'
import type { LiveTurn } from '../turn/turn-scope.ts'

export interface LiveTurnsDeps extends SettingsSource {
  readonly lanes: LaneQueue
  readonly shares?: Shares | undefined
  readonly clock: Clock
  /** Conducts a turn that is stored, or need not be yet, to its end. */
  readonly conduct: (turn: LiveTurn, permit: Permit) => Promise<TurnResult>
  /** Takes note that a turn neither waits nor runs here any more. */
  readonly forgotten: (turn: LiveTurn) => void
  /** Takes note that an attempt at a turn has ended here. */
  readonly ended: (turn: LiveTurn) => void
}

const RETRY_AFTER_SECS = 5
/** The lane queue's group for turns that no client asked for. */
const TURNS_GROUP = 'turns'

/** The permit of a turn that is cancelled while it waits: recording its end takes no permit. */
const NO_PERMIT: Permit = { state: 'ended', release: () => undefined, reacquire: async () => undefined }

interface Live {
  readonly turn: LiveTurn
  readonly ended: Promise<unknown>
}

export class LiveTurns {
  readonly #deps: LiveTurnsDeps
  /** Waiting and running turns; bounded by `max_queued_turns`, and by `UNFINISHED_MAX` after a crash. */
  readonly #live = new Map<string, Live>()
  /** The number of turns in the queue that have not started: turns of operators, whom no other client may shut out, and all others. */
  readonly #waiting = { operators: 0, others: 0 }
  #stopReason: AppError | undefined

  constructor(deps: LiveTurnsDeps) {
    this.#deps = deps
  }

  /** Why no turn begins any more; undefined until the daemon stops. */
  get stopReason(): AppError | undefined {
    return this.#stopReason
  }

  /** Begins no more turns. Returns the reason with which further ones are refused. */
  stop(): AppError {
    this.#stopReason ??= new AppError('unavailable', 'The daemon is stopping', { retryAfterSecs: RETRY_AFTER_SECS })
    return this.#stopReason
  }

  ids(): string[] {
    return [...this.#live.keys()]
  }

  /** Returns the turns in the order in which they were accepted. */
  all(): LiveTurn[] {
    return [...this.#live.values()].map(({ turn }) => turn)
  }

  has(turnId: string): boolean {
    return this.#live.has(turnId)
  }

  get(turnId: string): LiveTurn | undefined {
    return this.#live.get(turnId)?.turn
  }

  /** Resolves when the turn neither runs nor waits here. Never rejects. */
  async ended(turnId: string): Promise<void> {
    await this.#live.get(turnId)?.ended.catch(() => undefined)
  }

  /** Resolves once these turns have ended, however they end. */
  async allEnded(isMeant: (turn: LiveTurn) => boolean): Promise<void> {
    const meant = [...this.#live.values()].filter(({ turn }) => isMeant(turn))
    await Promise.allSettled(meant.map(({ ended }) => ended))
  }

  /** Waits until every turn has ended, at most `timeoutMs`. */
  async allEndWithin(timeoutMs: number): Promise<void> {
    await endsWithin(
      this.allEnded(() => true),
      timeoutMs,
      this.#deps.clock,
    )
  }

  /** Aborts a turn. Returns false when it neither runs nor waits, or when it belongs to another owner than `owner`. */
  abort(turnId: string, owner?: string): boolean {
    const turn = this.get(turnId)
    if (!turn || (owner !== undefined && turn.owner !== owner) || turn.phase === 'ending' || turn.cancellation.reason) return false
    turn.cancellation.cancel(aborted(turnId))
    return true
  }

  cancel(isMeant: (turn: LiveTurn) => boolean, reason: AppError): void {
    for (const turn of this.all()) if (turn.phase !== 'ending' && isMeant(turn)) turn.cancellation.cancel(reason)
  }

  load(): { readonly running: number; readonly queued: number; readonly sessions: number } {
    const turns = this.all()
    return {
      running: turns.filter(({ permit }) => permit?.state === 'held').length,
      queued: turns.filter(({ permit }) => permit === undefined || permit.state === 'reacquiring').length,
      sessions: new Set(turns.flatMap(({ session }) => session ?? [])).size,
    }
  }

  /** Whether a turn of this request would begin at once. */
  startsAtOnce(request: Pick<TurnRequest, 'limited' | 'session'>): boolean {
    return this.#deps.lanes.startsAtOnce({ ...this.#placeOf(request), lane: request.session })
  }

  /**
   * Enqueues a turn in its session's lane. Throws `unavailable` when the daemon stops. A new turn is refused with `share_used` when too
   * many turns of its client wait, also for a person, and with `unavailable` when it would have to wait in a full queue.
   */
  enqueue(turn: LiveTurn, { isResumed = false } = {}): Promise<TurnResult> {
    if (this.#stopReason) throw this.#stopReason
    const endWait = this.#beginWait(turn, { isResumed, startsAtOnce: this.startsAtOnce(turn) })
    const ended = Promise.withResolvers<TurnResult>()
    const job = this.#deps.lanes.enter({
      ...this.#placeOf(turn),
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

  /** Runs a turn at once, inside a job of the same lane that holds a permit. */
  runInside(turn: LiveTurn, permit: Permit): Promise<TurnResult> {
    if (this.#stopReason) throw this.#stopReason
    const ended = Promise.withResolvers<TurnResult>()
    this.#live.set(turn.id, { turn, ended: ended.promise })
    void this.#work(turn, permit, ended)
    return ended.promise
  }

  /** Forgets this attempt at a turn. Another attempt may be live. */
  forget(turn: LiveTurn): void {
    if (this.#live.get(turn.id)?.turn !== turn) return
    this.#live.delete(turn.id)
    this.#deps.forgotten(turn)
  }

  /** Conducts the turn to its end and settles `ended`. Never rejects. */
  async #work(turn: LiveTurn, permit: Permit, ended: PromiseWithResolvers<TurnResult>): Promise<void> {
    turn.permit = permit
    try {
      await turn.kept
      ended.resolve(await this.#deps.conduct(turn, permit))
    } catch (error) {
      ended.reject(error)
    } finally {
      this.forget(turn)
      this.#deps.ended(turn)
    }
  }

  /**
   * The members of a job that decide when it starts: clients take turns, and each uses at most its share. Operators go first, and so do turns
   * that no client asked for, such as steps of procedures, which have limits of their own.
   */
  #placeOf({ limited }: Pick<TurnRequest, 'limited'>): Pick<Job, 'group' | 'isPrior' | 'sharing'> {
    if (!limited) return { group: TURNS_GROUP, isPrior: true }
    return { group: countedAs(limited), isPrior: isOperator(limited), sharing: this.#deps.shares?.runningOf(limited) }
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
}

const isOperator = (client: LimitedClient | undefined): boolean => client?.standing === 'operator'
