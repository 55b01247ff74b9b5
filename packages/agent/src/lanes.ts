/**
 * The order turns run in: one lane per session, one after another inside a lane, lanes side by side up to a bound, first
 * ready first served. Every operation takes constant time, and a slow lane delays no other (decisions, "Order").
 */

import { LinkedQueue, type Place } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { type Slot, Slots } from './slots.ts'

export interface LaneLimits {
  /** Jobs that run at once, over all lanes. */
  readonly runningMax: number
  /** Jobs that wait, over all lanes; one that can start at once never waits. */
  readonly waitingMax: number
}

export interface Job {
  /** Takes a waiting job out, for good. False if it has started. */
  leave(): boolean
}

/** `followed` aborts once another job waits behind this one; undefined: it has a lane of its own. */
export type Work = (slot: Slot, followed?: AbortSignal) => Promise<unknown>

interface Entry {
  readonly lane: string | null
  readonly work: Work
  /** Where it waits, undefined once it has started or left. */
  queue: LinkedQueue<Entry> | undefined
  place: Place<Entry> | undefined
}

/** Seconds after which a caller refused by a full queue may try again. */
const RETRY_AFTER_SECS = 5

export class Lanes {
  readonly #limits: () => LaneLimits
  /** The lanes in use, each with those that wait behind the one that runs or is ready. */
  readonly #lanes = new Map<string, LinkedQueue<Entry>>()
  /** Of the jobs that run in them and nobody waits behind. */
  readonly #followed = new Map<string, AbortController>()
  /** At most one job of each lane. */
  readonly #ready = new LinkedQueue<Entry>()
  readonly #slots: Slots
  #waiting = 0

  constructor(limits: () => LaneLimits) {
    this.#limits = limits
    this.#slots = new Slots(
      () => limits().runningMax,
      () => this.#fill(),
    )
  }

  /** A job that is away from its slot counts nowhere but in its lane, until it waits to come back. */
  get load(): { readonly running: number; readonly queued: number; readonly sessions: number } {
    const { held, returning } = this.#slots.load
    return { running: held, queued: this.#waiting + returning, sessions: this.#lanes.size }
  }

  /**
   * Runs `work` when its turn comes, at once if it can; a lane of `null` is the job's own. Throws `unavailable` when the
   * queue is full, unless `unbounded`. What `work` resolves to or rejects with is its own affair.
   */
  enter(lane: string | null, work: Work, { unbounded = false } = {}): Job {
    this.#fill()
    const behind = lane === null ? undefined : this.#lanes.get(lane)
    const startsNow = !behind && this.#slots.hasFree
    if (!startsNow && !unbounded && this.#waiting >= this.#limits().waitingMax) {
      throw new AppError('unavailable', 'Too many turns are waiting', { retryAfterSecs: RETRY_AFTER_SECS })
    }
    const entry: Entry = { lane, work, queue: undefined, place: undefined }
    if (lane !== null && !behind) this.#lanes.set(lane, new LinkedQueue())
    if (startsNow) this.#start(entry)
    else {
      this.#waiting++
      this.#queueIn(behind ?? this.#ready, entry)
      if (lane !== null) this.#tellFollowed(lane)
    }
    return { leave: () => this.#leave(entry) }
  }

  #queueIn(queue: LinkedQueue<Entry>, entry: Entry): void {
    entry.queue = queue
    entry.place = queue.push(entry)
  }

  #leave(entry: Entry): boolean {
    const { queue, place } = entry
    if (!queue || !place) return false
    queue.remove(place)
    entry.queue = undefined
    this.#waiting--
    if (queue === this.#ready) this.#nextOf(entry.lane)
    return true
  }

  #start(entry: Entry): void {
    entry.queue = undefined
    const slot = this.#slots.take()
    const { lane } = entry
    const ended = () => {
      if (lane !== null) this.#followed.delete(lane)
      this.#nextOf(lane)
      slot.end()
    }
    entry.work(slot, lane === null ? undefined : this.#watchBehind(lane)).then(ended, ended)
  }

  #watchBehind(lane: string): AbortSignal {
    const followed = new AbortController()
    this.#followed.set(lane, followed)
    if (!this.#lanes.get(lane)?.isEmpty) this.#tellFollowed(lane)
    return followed.signal
  }

  /** Once: an abort makes an error each time. */
  #tellFollowed(lane: string): void {
    this.#followed.get(lane)?.abort()
    this.#followed.delete(lane)
  }

  /** Makes the next job of a lane ready; a lane nobody waits in is closed. */
  #nextOf(lane: string | null): void {
    if (lane === null) return
    const next = this.#lanes.get(lane)?.shift()
    if (next) this.#queueIn(this.#ready, next)
    else this.#lanes.delete(lane)
  }

  /** Starts who is ready; also asked before each entry, as the bound may have been raised. */
  #fill(): void {
    this.#slots.readmit()
    while (this.#slots.hasFree) {
      const next = this.#ready.shift()
      if (!next) return
      this.#waiting--
      this.#start(next)
    }
  }
}
