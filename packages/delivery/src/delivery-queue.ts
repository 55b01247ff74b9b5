/**
 * The rows of the inbox or the outbox that wait in a lane queue, each once. Only numbers are held here; the content of a row
 * stays in the store until its attempt begins.
 */
import type { Attempt, Job, JobOutcome, LaneQueue, QueuedJob, Sharing } from '@sluice/kit'
import {
  type Clock,
  isLeaseLost,
  type Logger,
  type MessageKind,
  type NewReply,
  type OwnedStore,
  replyLane,
  shardOfConversation,
  type Waiting,
  type WaitingMessage,
} from '@sluice/sdk'

/** One account of one channel. */
export type Account = Pick<Waiting, 'channel' | 'account'>

/** A row that waits here, with the store under the lease of its shard. The kind is that of a message. */
export interface OwnedRow extends Waiting, Pick<WaitingMessage, 'kind'> {
  readonly owned: OwnedStore
}

/** A stored reply that waits to be sent by the owner of its shard. */
export interface QueuedReply extends Waiting {
  readonly shard: number
}

export interface DeliveryQueueOptions {
  readonly lanes: LaneQueue
  readonly clock: Clock
  readonly log: Logger
  /** A rejection means that the store failed: the row is tried again after `FAULT_DELAY_MS`. */
  work(row: OwnedRow, attempt: Attempt): Promise<JobOutcome>
  /** Called once for each row that needs no more work here. */
  onDone?(row: Waiting): void
}

/** The writer of a row, whose share of the permits it uses, and whether it starts before others. */
export type JobPlace = Pick<Job, 'isPrior' | 'sharing' | 'writer'>

/** A row may be the cause of crashes once they have interrupted its attempts this number of times. */
const INTERRUPTED_ATTEMPTS = 2
const FAULT_DELAY_MS = 5000

export const accountKey = ({ channel, account }: Account): string => `${channel} ${account}`

/** Converts stored replies to rows for the outbox worker. `numbers` are their outbox numbers, in the order of the replies. */
export const waitingReplies = (replies: readonly NewReply[], numbers: readonly number[]): readonly QueuedReply[] =>
  numbers.flatMap((number, index): QueuedReply[] => {
    const reply = replies[index]
    if (!reply) return []
    const { channel, account } = reply
    return [{ number, channel, account, lane: replyLane(reply), shard: shardOfConversation(reply), atMs: 0, interruptions: 0 }]
  })

export class DeliveryQueue {
  readonly #options: DeliveryQueueOptions
  /** The jobs by the number of their row, oldest first. */
  readonly #jobs = new Map<number, DeliveryJob>()
  readonly #idle = Promise.withResolvers<void>()
  /** The jobs whose attempt is under way. */
  readonly #running = new Set<DeliveryJob>()
  /** Called at the end of each attempt. */
  readonly #awaiting = new Set<() => void>()
  #isStopped = false

  constructor(options: DeliveryQueueOptions) {
    this.#options = options
  }

  /** The number of rows that run or wait. */
  get size(): number {
    return this.#jobs.size
  }

  has(number: number): boolean {
    return this.#jobs.has(number)
  }

  /** Lists the lanes in which rows of a writer run or wait. */
  lanesOf(writer: string): readonly string[] {
    return [...new Set([...this.#jobs.values()].flatMap((job) => (job.writer === writer ? job.lane : [])))]
  }

  /** How long the oldest row has been in the queue. */
  get oldestMs(): number {
    const [oldest] = this.#jobs.values()
    return oldest ? this.#options.clock.monotonicMs() - oldest.enteredMs : 0
  }

  /** How long a row of the account with this key has been ready to start. A row that waits for its time or behind another is not ready. */
  readyMs(account: string): number {
    return this.#options.lanes.readyMs(account)
  }

  /** Returns false for a row that is already in the queue, and once the queue is stopped. `place` decides when it starts. */
  enter(row: Waiting & Pick<WaitingMessage, 'kind'>, owned: OwnedStore, place: JobPlace = {}): boolean {
    const { clock, lanes } = this.#options
    if (this.#isStopped || this.#jobs.has(row.number)) return false
    const job = new DeliveryJob(row, owned, clock.monotonicMs(), this.#run, place)
    this.#jobs.set(row.number, job)
    job.queued = lanes.enter(job)
    if (!job.queued) this.#jobs.delete(row.number)
    return job.queued !== undefined
  }

  /**
   * Removes a row that waits, which needs no more work here. When `end` rejects, the row waits again in its place, and no later row of its lane
   * has begun meanwhile. Resolves to false for a row that runs or is not here.
   */
  async end(number: number, end: () => Promise<void>): Promise<boolean> {
    const job = this.#jobs.get(number)
    if (!job?.queued?.hold()) return false
    try {
      await end()
    } catch (error) {
      job.queued.resume()
      throw error
    }
    job.queued.leave()
    if (this.#jobs.get(number) === job) this.#leave(job)
    return true
  }

  /** As `end`, also for a row that is not here. Resolves to false for a row that runs, which is left as it is. */
  async ending(number: number, end: () => Promise<void>): Promise<boolean> {
    if (await this.end(number, end)) return true
    if (this.has(number)) return false
    await end()
    return true
  }

  /** Removes the rows under a lost lease. An attempt under way ends without a retry, and its lane continues after it. */
  drop(owned: OwnedStore): void {
    const lost = [...this.#jobs.values()].filter((job) => job.owned === owned)
    for (const job of lost) this.#leave(job)
    // A row that leaves its lane makes the next one ready, which `#run` then does not start.
    for (const { queued } of lost) queued?.leave()
  }

  /** Resolves once no attempt under this lease is under way. */
  async idle(owned: OwnedStore): Promise<void> {
    const isIdle = (): boolean => ![...this.#running].some((job) => job.owned === owned)
    if (isIdle()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = (): void => {
      if (isIdle()) resolve()
    }
    this.#awaiting.add(look)
    await promise
    this.#awaiting.delete(look)
  }

  /** Starts no more rows. Resolves once the attempts under way have ended. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true
    // A row that leaves makes the next one of its lane ready, which `#run` then does not start.
    for (const { queued } of this.#jobs.values()) queued?.leave()
    if (this.#running.size > 0) await this.#idle.promise
  }

  readonly #run = async (job: DeliveryJob, attempt: Attempt): Promise<JobOutcome> => {
    if (this.#isStopped || this.#jobs.get(job.number) !== job) return 'done'
    this.#running.add(job)
    const outcome = await this.#attempt(job, attempt)
    this.#running.delete(job)
    for (const look of this.#awaiting) look()
    const isPresent = this.#jobs.get(job.number) === job
    if (outcome === 'done' && isPresent) this.#leave(job)
    if (this.#isStopped && this.#running.size === 0) this.#idle.resolve()
    return this.#isStopped || !isPresent ? 'done' : outcome
  }

  #leave(job: DeliveryJob): void {
    this.#jobs.delete(job.number)
    this.#options.onDone?.(job)
  }

  async #attempt(row: OwnedRow, attempt: Attempt): Promise<JobOutcome> {
    const { work, clock, log } = this.#options
    try {
      return await work(row, attempt)
    } catch (error) {
      // The next owner of the shard continues with the row.
      if (isLeaseLost(error)) return 'done'
      log.error('delivery attempt failed', { channel: row.channel, number: row.number, error })
      return { retryAtMs: clock.nowMs() + FAULT_DELAY_MS }
    }
  }
}

/**
 * A row and its place in the lanes. Many of them wait, so that each is one object with few members: the garbage collector copies what
 * stays.
 */
class DeliveryJob implements Job, OwnedRow {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly lane: string
  readonly atMs: number
  readonly interruptions: number
  readonly kind?: MessageKind
  readonly owned: OwnedStore
  readonly isPrior: boolean | undefined
  readonly sharing: Sharing | undefined
  readonly writer: string | undefined
  /** The time of entry, by the monotonic clock. */
  readonly enteredMs: number
  readonly #run: (job: DeliveryJob, attempt: Attempt) => Promise<JobOutcome>
  queued: QueuedJob | undefined

  constructor(
    row: Waiting & Pick<WaitingMessage, 'kind'>,
    owned: OwnedStore,
    enteredMs: number,
    run: (job: DeliveryJob, attempt: Attempt) => Promise<JobOutcome>,
    { isPrior, sharing, writer }: JobPlace,
  ) {
    this.number = row.number
    this.channel = row.channel
    this.account = row.account
    this.lane = row.lane
    this.atMs = row.atMs
    this.interruptions = row.interruptions
    if (row.kind !== undefined) this.kind = row.kind
    this.owned = owned
    this.isPrior = isPrior
    this.sharing = sharing
    this.writer = writer
    this.enteredMs = enteredMs
    this.#run = run
    this.queued = undefined
  }

  get group(): string {
    return accountKey(this)
  }

  get dueAtMs(): number {
    return this.atMs
  }

  get isInterrupted(): boolean {
    return this.interruptions >= INTERRUPTED_ATTEMPTS
  }

  run(attempt: Attempt): Promise<JobOutcome> {
    return this.#run(this, attempt)
  }
}
