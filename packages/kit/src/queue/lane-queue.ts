/**
 * Runs jobs one after another inside a lane, and lanes in parallel up to a bound that may change. When permits
 * are scarce, the lanes that are ready start in the order in which they became ready, and the groups that share the queue take
 * turns. The jobs of one owner use at most its share of the permits; prior jobs start first. A job that waits for the share of its owner
 * lets other writers of its lane pass. Every operation takes constant time, but for the jobs that `Lane` passes over.
 */
import type { Clock } from '@sluice/sdk'
import { type FairPlace, FairQueue } from './fair-queue.ts'
import { Lane } from './lane.ts'
import type { Place } from './linked-queue.ts'
import { PermitShares, SharedPermit, type Sharing, type WaiterPlace } from './permit-shares.ts'
import { type Permit, Semaphore } from './semaphore.ts'

/**
 * `done` removes the job. After `retryAtMs` (since 1970) the same job runs again. Until then its lane waits, unless the job `leavesLane`.
 * A job that `stepsAside` waits for a reason of its own writer: the jobs of other writers pass it, and later ones of its writer do not.
 */
export type JobOutcome = 'done' | { readonly retryAtMs: number; readonly leavesLane?: true; readonly stepsAside?: true }

/** One run of a job. */
export interface Attempt {
  readonly permit: Permit
  /** Aborts once another job of the same writer waits in the same lane. Undefined for a job that has a lane of its own. */
  readonly superseded: AbortSignal | undefined
  /** Returns a new signal in place of `superseded`, for a job that has dealt with the waiting ones. */
  renew(): AbortSignal | undefined
}

export interface Job {
  /** Null: a lane of its own, so that it waits for no other job. */
  readonly lane: string | null
  /** The person of the job, where several people share its lane. A job without one is of every writer. */
  readonly writer?: string | undefined
  /** Whose share of the permits the job uses. Absent: it uses no share. */
  readonly sharing?: Sharing | undefined
  /** Whether the job starts before others. */
  readonly isPrior?: boolean | undefined
  /** The groups take turns. A group is an account, or a kind of caller. */
  readonly group: string
  /** Milliseconds since 1970; the job starts no earlier. Absent: it may start at once. */
  readonly dueAtMs?: number
  /** True when crashes interrupted its attempts. At most one such job holds a permit, so that it cannot interrupt another one. */
  readonly isInterrupted?: boolean
  /** Called once for each attempt. A rejection ends the job as `done` does. */
  run(attempt: Attempt): Promise<JobOutcome>
}

export interface QueuedJob {
  /** Removes a job that waits. Returns false if it runs or has ended. */
  leave(): boolean
  /** Keeps a job that waits from starting. It keeps its place, so that no later job passes it. Returns false if it runs, has ended or is held already. */
  hold(): boolean
  /** Ends `hold`. */
  resume(): void
}

export interface LaneQueueOptions {
  readonly clock: Clock
  /** How many jobs may run at once; read before each start. Call `wake` after it has grown. */
  permits(): number
  /** How many of them jobs that are not prior may use. Default: all. */
  othersPermits?(): number
}

export interface LaneQueueLoad {
  readonly running: number
  /** Jobs that wait for their lane, their owner's share, a permit or their time. */
  readonly waiting: number
  /** Jobs that have released their permit and wait to get it back. */
  readonly reacquiring: number
}

/** The longest delay that any job is given. A due time beyond it means that the clock was set back: the job runs at once. */
export const LONGEST_DELAY_MS = 24 * 3_600_000 + 1000
/** How often a job that waits for its time checks whether the clock was set. */
const CLOCK_CHECK_MS = 60_000

/** A job in the queue. Many of them wait, so that each is one object without closures, which the garbage collector has less work with. */
class Entry implements QueuedJob {
  readonly job: Job
  readonly order: number
  readonly #queue: EntryQueue
  lane: string | null
  dueAtMs: number
  /** `held`: it would have started, but for `hold`. */
  state: 'behind' | 'parked' | 'sharing' | 'ready' | 'held' | 'running' | 'ended' = 'behind'
  isHeld = false
  /** The place among those behind the head of the lane. */
  behind: Place<Entry> | undefined = undefined
  /** The place among the jobs that wait for the share of their owner. */
  sharing: WaiterPlace | undefined = undefined
  ready: FairPlace<Entry> | undefined = undefined
  /** The time at which the job became ready, by the monotonic clock. */
  readySinceMs = 0
  /** Ends the job's wait for its due time. */
  parked: AbortController | undefined = undefined
  attempt: RunningAttempt | undefined = undefined

  constructor(job: Job, order: number, queue: EntryQueue) {
    this.job = job
    this.order = order
    this.#queue = queue
    this.lane = job.lane
    this.dueAtMs = job.dueAtMs ?? 0
  }

  leave(): boolean {
    return this.#queue.leave(this)
  }

  hold(): boolean {
    if (this.state === 'running' || this.state === 'ended' || this.isHeld) return false
    this.isHeld = true
    return true
  }

  resume(): void {
    this.isHeld = false
    this.#queue.resume(this)
  }
}

/** What the entries of one queue share. */
interface EntryQueue {
  leave(entry: Entry): boolean
  resume(entry: Entry): void
}

class RunningAttempt implements Attempt {
  readonly permit: Permit
  readonly #hasLane: boolean
  readonly #isFollowed: () => boolean
  #isSuperseded = false
  #superseded: AbortController | undefined

  constructor(permit: Permit, hasLane: boolean, isFollowed: () => boolean) {
    this.permit = permit
    this.#hasLane = hasLane
    this.#isFollowed = isFollowed
  }

  get superseded(): AbortSignal | undefined {
    if (!this.#hasLane) return undefined
    if (!this.#superseded) {
      this.#superseded = new AbortController()
      if (this.#isSuperseded) this.#superseded.abort()
    }
    return this.#superseded.signal
  }

  renew(): AbortSignal | undefined {
    this.#isSuperseded = this.#isFollowed()
    this.#superseded = undefined
    return this.superseded
  }

  /** Aborts at most once, because each abort creates an error object. */
  supersede(): void {
    if (this.#isSuperseded) return
    this.#isSuperseded = true
    this.#superseded?.abort()
  }
}

/** Jobs that wait for a permit only. Interrupted ones go first. */
class ReadyGroup {
  readonly #usual = new FairQueue<Entry>()
  readonly #interrupted = new FairQueue<Entry>()

  push(entry: Entry): FairPlace<Entry> {
    return this.#queueOf(entry).push(entry.job.group, entry)
  }

  /** Takes the next job that is not held; an interrupted one only if the caller may start one. */
  shift(mayBeInterrupted: boolean): Entry | undefined {
    for (;;) {
      const next = (mayBeInterrupted ? this.#interrupted.shift() : undefined) ?? this.#usual.shift()
      if (!next?.isHeld) return next
      next.state = 'held'
    }
  }

  remove(place: FairPlace<Entry>, entry: Entry): void {
    this.#queueOf(entry).remove(place)
  }

  /** The time since which the first job of a group is ready; `Infinity` without one. */
  sinceMs(group: string): number {
    const [usual, interrupted] = [this.#usual.firstOf(group), this.#interrupted.firstOf(group)]
    return Math.min(usual?.readySinceMs ?? Number.POSITIVE_INFINITY, interrupted?.readySinceMs ?? Number.POSITIVE_INFINITY)
  }

  #queueOf({ job }: Entry): FairQueue<Entry> {
    return job.isInterrupted ? this.#interrupted : this.#usual
  }
}

/** The jobs that wait for a permit only, prior ones apart. */
class ReadyJobs {
  readonly #usual = new ReadyGroup()
  readonly #prior = new ReadyGroup()

  push(entry: Entry): void {
    entry.ready = this.of(entry.job).push(entry)
  }

  remove(entry: Entry): void {
    if (entry.ready) this.of(entry.job).remove(entry.ready, entry)
  }

  of({ isPrior = false }: Pick<Job, 'isPrior'>): ReadyGroup {
    return isPrior ? this.#prior : this.#usual
  }

  /** As `ReadyGroup.sinceMs`. */
  sinceMs(group: string): number {
    return Math.min(this.#usual.sinceMs(group), this.#prior.sinceMs(group))
  }
}

export class LaneQueue {
  readonly #clock: Clock
  readonly #semaphore: Semaphore
  readonly #lanes = new Map<string, Lane<Entry>>()
  readonly #shares = new PermitShares()
  readonly #ready = new ReadyJobs()
  readonly #parked = new Set<AbortController>()
  readonly #idle = Promise.withResolvers<void>()
  #entered = 0
  #waiting = 0
  #running = 0
  #isFilling = false
  #isStopped = false

  constructor({ clock, permits, othersPermits = permits }: LaneQueueOptions) {
    this.#clock = clock
    this.#semaphore = new Semaphore(
      () => (this.#isStopped ? Number.POSITIVE_INFINITY : permits()),
      () => this.#fill(),
      () => (this.#isStopped ? Number.POSITIVE_INFINITY : othersPermits()),
    )
  }

  /** A job that has released its permit is not counted until it reacquires the permit. */
  get load(): LaneQueueLoad {
    const { held, reacquiring } = this.#semaphore.load
    return { running: held, waiting: this.#waiting, reacquiring: reacquiring + this.#shares.waitingAgain }
  }

  /** Lists how many permits the owners of jobs use, and the permits that the next of their jobs wait for. */
  used(): Iterable<readonly [owner: string, permits: number]> {
    return this.#shares.used()
  }

  /** How long the oldest ready job of a group has waited for a permit. Jobs that wait for their lane, a share or their time are not ready. */
  readyMs(group: string): number {
    return Math.max(0, this.#clock.monotonicMs() - this.#ready.sinceMs(group))
  }

  /** Whether this job would start at once if it entered now. */
  startsAtOnce({ lane, sharing, isPrior }: Pick<Job, 'lane' | 'sharing' | 'isPrior'>): boolean {
    this.#fill()
    if (this.#isStopped || (lane !== null && this.#lanes.has(lane))) return false
    return this.#semaphore.hasFree({ isPrior }) && (!sharing || this.#shares.hasRoom(sharing))
  }

  /** Adds a job and starts it if it may start now. Returns undefined once the queue is stopped. */
  enter(job: Job): QueuedJob | undefined {
    if (this.#isStopped) return undefined
    const entry = new Entry(job, this.#entered++, this.#entries)
    this.#waiting++
    const lane = job.lane === null ? undefined : this.#lanes.get(job.lane)
    if (lane?.holdsUp(job)) {
      entry.behind = lane.push(entry)
      if (lane.head && lane.supersedes(lane.head.job)) lane.head.attempt?.supersede()
    } else {
      if (lane) lane.head = entry
      else if (job.lane !== null) this.#lanes.set(job.lane, new Lane(entry))
      this.#schedule(entry)
      this.#fill()
    }
    return entry
  }

  /** Starts the jobs that may start by now; call it when permits or shares have grown. */
  wake(): void {
    this.#shares.wake()
    this.#fill()
  }

  /**
   * Starts no more jobs, and returns released permits regardless of the bound. Resolves once the running jobs have ended; jobs that
   * wait never run. Idempotent.
   */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const parked of this.#parked) parked.abort()
    this.#shares.open()
    this.#semaphore.readmit()
    if (this.#running > 0) await this.#idle.promise
  }

  /** Makes a job that no other job of its lane holds up ready, now or when its time has come. */
  #schedule(entry: Entry): void {
    const waitMs = entry.dueAtMs - this.#clock.nowMs()
    if (waitMs <= 0 || waitMs > LONGEST_DELAY_MS) this.#makeReady(entry)
    else void this.#park(entry)
  }

  /** A job without room in the share of its owner waits until another one of that owner has ended. */
  #makeReady(entry: Entry): void {
    const { sharing } = entry.job
    const admitted = (): boolean => {
      entry.sharing = undefined
      // A part of the share that waited for another writer's turn could make two lanes wait for each other.
      if (!this.#takeLane(entry)) return false
      this.#pushReady(entry)
      this.#fill()
      return true
    }
    entry.sharing = sharing && this.#shares.enter(sharing, admitted, { isFresh: true })
    if (entry.sharing) {
      entry.state = 'sharing'
      this.#stepAside(entry)
    } else this.#pushReady(entry)
  }

  /** Lets the jobs of other writers pass the head of a lane. */
  #stepAside(entry: Entry): void {
    const lane = this.#laneOf(entry)
    if (lane?.head === entry && lane.stepAside()) this.#advance(lane)
  }

  /** Makes a job that stepped aside the head of its lane. Returns false where another job is the head: then the job waits behind that one. */
  #takeLane(entry: Entry): boolean {
    entry.behind = this.#laneOf(entry)?.rejoin(entry)
    if (entry.behind) entry.state = 'behind'
    return !entry.behind
  }

  /** Starts the next job of a lane without a head. */
  #advance(lane: Lane<Entry>): void {
    const next = lane.advance()
    if (!next) return
    next.behind = undefined
    this.#schedule(next)
  }

  #pushReady(entry: Entry): void {
    entry.state = 'ready'
    entry.readySinceMs = this.#clock.monotonicMs()
    this.#ready.push(entry)
  }

  /** Waits for the job's due time by both clocks and ends with the first one, because the wall clock may be set meanwhile. */
  async #park(entry: Entry): Promise<void> {
    const parked = new AbortController()
    entry.state = 'parked'
    entry.parked = parked
    this.#parked.add(parked)
    const { dueAtMs } = entry
    const dueMs = this.#clock.monotonicMs() + dueAtMs - this.#clock.nowMs()
    const leftMs = (): number => Math.min(dueMs - this.#clock.monotonicMs(), dueAtMs - this.#clock.nowMs())
    for (let ms = leftMs(); ms > 0 && !parked.signal.aborted; ms = leftMs()) {
      await this.#clock.sleep(Math.min(ms, CLOCK_CHECK_MS), parked.signal)
    }
    this.#parked.delete(parked)
    entry.parked = undefined
    if (parked.signal.aborted || !this.#takeLane(entry)) return
    this.#makeReady(entry)
    this.#fill()
  }

  /** Starts ready jobs while there are permits. A job that releases its permit as it starts calls it again from inside. */
  #fill(): void {
    if (this.#isFilling) return
    this.#isFilling = true
    for (;;) {
      this.#semaphore.readmit()
      const next = this.#isStopped ? undefined : (this.#nextReady(true) ?? this.#nextReady(false))
      if (!next) break
      void this.#run(next)
    }
    this.#isFilling = false
  }

  #nextReady(isPrior: boolean): Entry | undefined {
    if (!this.#semaphore.hasFree({ isPrior })) return undefined
    return this.#ready.of({ isPrior }).shift(this.#semaphore.hasFree({ isPrior, isExclusive: true }))
  }

  async #run(entry: Entry): Promise<void> {
    const { job } = entry
    const acquired = this.#semaphore.acquire({ isExclusive: job.isInterrupted, isPrior: job.isPrior })
    const permit = job.sharing ? new SharedPermit(acquired, this.#shares, job.sharing) : acquired
    const isFollowed = (): boolean => this.#laneOf(entry)?.supersedes(job) === true
    const attempt = new RunningAttempt(permit, entry.lane !== null, isFollowed)
    entry.state = 'running'
    entry.attempt = attempt
    this.#waiting--
    this.#running++
    if (isFollowed()) attempt.supersede()
    const outcome = await outcomeOf(job, attempt)
    entry.attempt = undefined
    this.#running--
    if (outcome === 'done' || this.#isStopped) this.#end(entry)
    else {
      if (outcome.leavesLane) this.#leaveLane(entry)
      entry.dueAtMs = outcome.retryAtMs
      this.#waiting++
      this.#schedule(entry)
      if (outcome.stepsAside && entry.parked) this.#stepAside(entry)
    }
    permit.end()
    if (this.#running === 0 && this.#isStopped) this.#idle.resolve()
  }

  readonly #entries: EntryQueue = {
    leave: (entry) => this.#leave(entry),
    resume: (entry) => {
      if (entry.state === 'held') this.#pushReady(entry)
      this.#fill()
    },
  }

  #leave(entry: Entry): boolean {
    if (entry.state === 'running' || entry.state === 'ended') return false
    this.#waiting--
    if (entry.state === 'behind') {
      const lane = this.#laneOf(entry)
      if (entry.behind) lane?.remove(entry.behind)
      entry.state = 'ended'
      // A job of every writer may have held up others.
      if (lane && !lane.head) this.#advance(lane)
      this.#fill()
      return true
    }
    if (entry.state === 'ready') this.#ready.remove(entry)
    if (entry.sharing) this.#shares.leave(entry.sharing, { isFresh: true })
    const isCounted = entry.state === 'ready' || entry.state === 'held'
    entry.parked?.abort()
    this.#end(entry)
    if (isCounted && entry.job.sharing) this.#shares.free(entry.job.sharing)
    this.#fill()
    return true
  }

  #end(entry: Entry): void {
    entry.state = 'ended'
    this.#leaveLane(entry)
  }

  /** Takes the head, or a job that stepped aside, from its lane. The next job becomes the head, and a lane without jobs is closed. */
  #leaveLane(entry: Entry): void {
    const { lane: name } = entry
    const lane = this.#laneOf(entry)
    if (!lane || name === null || this.#isStopped) return
    entry.lane = null
    if (lane.head === entry) lane.head = undefined
    else lane.forgetAside(entry)
    if (!lane.head) this.#advance(lane)
    if (lane.isEmpty) this.#lanes.delete(name)
  }

  #laneOf({ lane }: Entry): Lane<Entry> | undefined {
    return lane === null ? undefined : this.#lanes.get(lane)
  }
}

async function outcomeOf(job: Job, attempt: Attempt): Promise<JobOutcome> {
  try {
    return await job.run(attempt)
  } catch {
    return 'done'
  }
}
