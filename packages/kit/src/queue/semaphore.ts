/**
 * Bounds how many jobs run at once. A job that only waits, for example for a person's answer, releases its permit and reacquires it
 * before new jobs start. At most one exclusive job holds a permit at a time, next to jobs that are not exclusive. Jobs that are not
 * prior may have a smaller bound, so that they cannot keep prior jobs waiting.
 */
import { LinkedQueue, type Place } from './linked-queue.ts'

/** A job with a released permit still holds the memory of its work. Beyond this number of such jobs `release` keeps the permit. */
export const RELEASED_PERMITS_MAX = 1000

/** `reacquiring`: the job waits for its permit again. `ended`: the job no longer needs a permit. */
export type PermitState = 'held' | 'released' | 'reacquiring' | 'ended'

export interface Permit {
  readonly state: PermitState
  /** Lets another job start while this one waits. Does nothing when the permit is not held, or `RELEASED_PERMITS_MAX` others are released. */
  release(): void
  /** Resolves once the permit is held again, at once if it is held, and also when the job ends first. Never rejects. */
  reacquire(): Promise<void>
}

export interface OwnedPermit extends Permit {
  /** Returns the permit at the end of the job, whether or not it is held. */
  end(): void
}

/** The class of a job: whether at most one such job holds a permit, and whether it goes before others. */
export interface PermitClass {
  readonly isExclusive?: boolean | undefined
  readonly isPrior?: boolean | undefined
}

interface Holder {
  readonly isExclusive: boolean
  readonly isPrior: boolean
  state: PermitState
  /** The place in the queue and the promise to resolve, while the holder is reacquiring. */
  place: Place<Holder> | undefined
  readmitted: PromiseWithResolvers<void> | undefined
}

export class Semaphore {
  readonly #max: () => number
  readonly #onFree: () => void
  readonly #othersMax: () => number
  /** The holders that are reacquiring, by their class. The classes are served in this order. */
  readonly #reacquiring = {
    priorExclusive: new LinkedQueue<Holder>(),
    prior: new LinkedQueue<Holder>(),
    exclusive: new LinkedQueue<Holder>(),
    others: new LinkedQueue<Holder>(),
  }
  /** The prior jobs that hold a permit. */
  #prior = 0
  readonly #counts: Record<PermitState, number> = { held: 0, released: 0, reacquiring: 0, ended: 0 }
  #isExclusiveHeld = false

  /**
   * `max` is read before each permit is given. `onFree` is called whenever a permit may have become free; it calls `readmit`
   * and then `acquire` for as long as `hasFree`. `othersMax` is the bound of the jobs that are not prior. One prior job gets a permit beyond
   * `max` when no prior job has one.
   */
  constructor(max: () => number, onFree: () => void, othersMax: () => number = max) {
    this.#max = max
    this.#onFree = onFree
    this.#othersMax = othersMax
  }

  get load(): { readonly held: number; readonly released: number; readonly reacquiring: number } {
    return this.#counts
  }

  hasFree({ isExclusive = false, isPrior = false }: PermitClass = {}): boolean {
    if (isExclusive && this.#isExclusiveHeld) return false
    const { held } = this.#counts
    if (isPrior) return held < this.#max() || this.#prior === 0
    return held < this.#max() && held - this.#prior < this.#othersMax()
  }

  /** Gives free permits to the jobs that are reacquiring. */
  readmit(): void {
    while (this.#counts.reacquiring > 0) {
      const holder = this.#nextReacquiring()
      if (!holder) return
      this.#move(holder, 'held')
    }
  }

  #nextReacquiring(): Holder | undefined {
    for (const { first } of Object.values(this.#reacquiring)) if (first && this.hasFree(first)) return first
    return undefined
  }

  /** Call it only while `hasFree` returns true for this class. */
  acquire({ isExclusive = false, isPrior = false }: PermitClass = {}): OwnedPermit {
    const holder: Holder = { isExclusive, isPrior, state: 'released', place: undefined, readmitted: undefined }
    this.#counts.released++
    this.#move(holder, 'held')
    return {
      get state() {
        return holder.state
      },
      release: () => this.#release(holder),
      reacquire: () => this.#reacquire(holder),
      end: () => this.#end(holder),
    }
  }

  #release(holder: Holder): void {
    const { released, reacquiring } = this.#counts
    const isBounded = holder.state === 'held' && released + reacquiring >= RELEASED_PERMITS_MAX
    if (isBounded || (holder.state !== 'held' && holder.state !== 'reacquiring')) return
    this.#move(holder, 'released')
    this.#onFree()
  }

  async #reacquire(holder: Holder): Promise<void> {
    if (holder.state === 'released') {
      this.#move(holder, 'reacquiring')
      this.readmit()
    }
    if (holder.state === 'reacquiring') await holder.readmitted?.promise
  }

  #end(holder: Holder): void {
    if (holder.state === 'ended') return
    this.#move(holder, 'ended')
    this.#onFree()
  }

  #move(holder: Holder, state: PermitState): void {
    if (holder.state === 'reacquiring') {
      if (holder.place) this.#queueOf(holder).remove(holder.place)
      holder.readmitted?.resolve()
    }
    if (state === 'reacquiring') {
      holder.place = this.#queueOf(holder).push(holder)
      holder.readmitted = Promise.withResolvers()
    }
    if (holder.isPrior) this.#prior += Number(state === 'held') - Number(holder.state === 'held')
    if (holder.isExclusive && (holder.state === 'held' || state === 'held')) this.#isExclusiveHeld = state === 'held'
    this.#counts[holder.state]--
    this.#counts[state]++
    holder.state = state
  }

  #queueOf({ isExclusive, isPrior }: Holder): LinkedQueue<Holder> {
    if (isPrior) return isExclusive ? this.#reacquiring.priorExclusive : this.#reacquiring.prior
    return isExclusive ? this.#reacquiring.exclusive : this.#reacquiring.others
  }
}
