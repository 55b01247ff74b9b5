/**
 * The order a durable queue is worked off in: one row after another inside a lane, lanes side by side up to a bound, first
 * ready first served. Only numbers are held here; the rows stay in the store until their turn comes.
 */
import type { Clock, Logger, Waiting } from '@sluice/sdk'
import { Fifo } from './fifo.ts'
import { DELAY_MS_MAX } from './retry-delay.ts'
import { WorkPlaces } from './work-places.ts'

/** `done`: the row needs no more work; else it is tried again, and its lane waits for it. */
export type WorkOutcome = 'done' | { readonly retryAtMs: number }

/** The place of a row that is worked on; for work that waits for a person. */
export interface WorkSlot {
  /** Aborts once another row waits behind this one. */
  readonly followed: AbortSignal
  /** Lets another lane start while this row still holds its own. */
  leave(): void
  /** Resolves once it has a place again, at once if it has one. Never rejects. */
  retake(): Promise<void>
}

export interface WorkLanesOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Rows that are worked on at once; asked before each start. */
  concurrency(): number
  /** A rejection means that the store could not be asked: the row is tried again a little later. */
  work(number: number, row: Pick<Waiting, 'channel' | 'account'>, slot: WorkSlot): Promise<WorkOutcome>
  /** Told once of each row that leaves. */
  onDone?(row: Pick<Waiting, 'channel' | 'account'>): void
}

/** A row that was cut so often may be what kills the daemon: such rows run one at a time, so that none takes another with it. */
const SUSPECT_CUTS = 2
/** How long a row waits whose work failed by a fault of ours or of the disk. */
const FAULT_WAIT_MS = 5000
/** How often a row that waits looks whether the clock was set. */
const CLOCK_LOOK_MS = 60_000

type Account = Pick<Waiting, 'channel' | 'account'>

interface Row extends Account {
  /** By the monotonic clock. */
  readonly enteredMs: number
}

const keyOf = ({ channel, account }: Account): string => `${channel} ${account}`

export class WorkLanes {
  readonly #options: WorkLanesOptions
  readonly #lanes = new Map<string, Fifo<number>>()
  /** Of the rows that are worked on and nobody waits behind. */
  readonly #followed = new Map<string, AbortController>()
  readonly #ready = new Fifo<string>()
  readonly #readySuspects = new Fifo<string>()
  readonly #suspects = new Set<number>()
  /** Every row that is here, so that none is here twice; the oldest first. */
  readonly #rows = new Map<number, Row>()
  /** Rows that must wait for their time. */
  readonly #notBefore = new Map<number, number>()
  /** Of each account, when its lanes became ready to start, the oldest first. */
  readonly #readySince = new Map<string, Map<string, number>>()
  readonly #stop = new AbortController()
  readonly #places: WorkPlaces
  #idle = Promise.withResolvers<void>()

  constructor(options: WorkLanesOptions) {
    this.#options = options
    this.#places = new WorkPlaces(
      () => (this.#stop.signal.aborted ? Number.POSITIVE_INFINITY : options.concurrency()),
      () => this.#fill(),
    )
  }

  get load(): { readonly running: number; readonly waiting: number } {
    const { here } = this.#places.load
    return { running: here, waiting: this.#rows.size - here }
  }

  /** The age of the oldest row that is here, since it entered. */
  get oldestMs(): number {
    const [oldest] = this.#rows.values()
    return oldest ? this.#options.clock.monotonicMs() - oldest.enteredMs : 0
  }

  /** How long a row of this account has been ready to start. A row that waits for its time or behind another is not ready. */
  readyMs(account: Account): number {
    const [sinceMs] = this.#readySince.get(keyOf(account))?.values() ?? []
    return sinceMs === undefined ? 0 : this.#options.clock.monotonicMs() - sinceMs
  }

  /** Takes a row; false if it is here already, or nothing is taken any more. */
  enter({ number, channel, account, lane, atMs, cuts }: Waiting): boolean {
    if (this.#rows.has(number) || this.#stop.signal.aborted) return false
    this.#rows.set(number, { channel, account, enteredMs: this.#options.clock.monotonicMs() })
    if (atMs > 0) this.#notBefore.set(number, atMs)
    if (cuts >= SUSPECT_CUTS) this.#suspects.add(number)
    const open = this.#lanes.get(lane)
    if (open) {
      open.push(number)
      this.#tellFollowed(lane)
    } else {
      const queue = new Fifo<number>()
      queue.push(number)
      this.#lanes.set(lane, queue)
      this.#makeReady(lane, number)
      this.#fill()
    }
    return true
  }

  /** Starts what may start by now; call it when `concurrency` has grown. */
  wake(): void {
    this.#fill()
  }

  /** Starts nothing more, and keeps nobody from coming back; resolves once what was started has ended. Idempotent. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#places.readmit()
    if (this.#places.load.taken > 0) await this.#idle.promise
  }

  #makeReady(lane: string, head: number): void {
    const atMs = this.#notBefore.get(head) ?? 0
    const waitMs = atMs - this.#options.clock.nowMs()
    // A time further away than any is put is of before the clock was set back.
    if (waitMs <= 0 || waitMs > DELAY_MS_MAX) this.#queue(lane, head)
    else void this.#park(lane, head, atMs)
  }

  #queue(lane: string, head: number): void {
    const ready = this.#suspects.has(head) ? this.#readySuspects : this.#ready
    ready.push(lane)
    const row = this.#rows.get(head)
    if (!row) return
    const since = this.#readySince.get(keyOf(row)) ?? new Map<string, number>()
    this.#readySince.set(keyOf(row), since.set(lane, this.#options.clock.monotonicMs()))
  }

  #started(lane: string, number: number): void {
    const row = this.#rows.get(number)
    if (!row) return
    const since = this.#readySince.get(keyOf(row))
    since?.delete(lane)
    if (since?.size === 0) this.#readySince.delete(keyOf(row))
  }

  /** For as long as it was to be, and no longer than until the clock, which may be set meanwhile, says so. */
  async #park(lane: string, head: number, atMs: number): Promise<void> {
    const { clock } = this.#options
    const dueMs = clock.monotonicMs() + atMs - clock.nowMs()
    const leftMs = () => Math.min(dueMs - clock.monotonicMs(), atMs - clock.nowMs())
    for (let ms = leftMs(); ms > 0; ms = leftMs()) {
      await clock.sleep(Math.min(ms, CLOCK_LOOK_MS), this.#stop.signal)
      if (this.#stop.signal.aborted) return
    }
    this.#queue(lane, head)
    this.#fill()
  }

  #fill(): void {
    this.#places.readmit()
    while (!this.#stop.signal.aborted && this.#places.isFree(false)) {
      const lane = (this.#places.isFree(true) ? this.#readySuspects.shift() : undefined) ?? this.#ready.shift()
      if (lane === undefined) return
      const number = this.#lanes.get(lane)?.peek()
      if (number !== undefined) void this.#run(lane, number)
    }
  }

  /** Once: an abort makes an error each time. */
  #tellFollowed(lane: string): void {
    this.#followed.get(lane)?.abort()
    this.#followed.delete(lane)
  }

  async #run(lane: string, number: number): Promise<void> {
    const place = this.#places.take(this.#suspects.has(number))
    this.#started(lane, number)
    const followed = new AbortController()
    this.#followed.set(lane, followed)
    if ((this.#lanes.get(lane)?.size ?? 0) > 1) this.#tellFollowed(lane)
    const outcome = await this.#attempt(number, { ...place, followed: followed.signal })
    this.#followed.delete(lane)
    if (outcome === 'done') this.#leave(lane, number)
    else {
      this.#notBefore.set(number, outcome.retryAtMs)
      this.#makeReady(lane, number)
    }
    place.end()
    if (this.#places.load.taken === 0 && this.#stop.signal.aborted) this.#idle.resolve()
  }

  async #attempt(number: number, slot: WorkSlot): Promise<WorkOutcome> {
    const { work, clock, log } = this.#options
    try {
      return await work(number, this.#rows.get(number) ?? { channel: '', account: '' }, slot)
    } catch (error) {
      log.error('a row of the delivery queue could not be worked on', { number, error })
      return { retryAtMs: clock.nowMs() + FAULT_WAIT_MS }
    }
  }

  #leave(lane: string, number: number): void {
    const row = this.#rows.get(number)
    this.#rows.delete(number)
    this.#notBefore.delete(number)
    this.#suspects.delete(number)
    const queue = this.#lanes.get(lane)
    queue?.shift()
    const next = queue?.peek()
    if (next === undefined) this.#lanes.delete(lane)
    else this.#makeReady(lane, next)
    if (row) this.#options.onDone?.(row)
  }
}
