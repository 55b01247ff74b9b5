/**
 * The places rows are worked on at: only so many at once, suspects one at a time. Who leaves its place for a while, as to
 * wait for a person, comes back before any row that has not started.
 */
import { Fifo } from './fifo.ts'
import type { WorkSlot } from './work-lanes.ts'

export interface TakenPlace extends Omit<WorkSlot, 'followed'> {
  /** Gives it up for good. */
  end(): void
}

interface Stay {
  readonly isSuspect: boolean
  state: 'here' | 'away' | 'returning' | 'over'
  back: PromiseWithResolvers<void> | undefined
}

/** The rows are bounded by those who take them in, and so are the stays. */
export class WorkPlaces {
  readonly #max: () => number
  readonly #onFree: () => void
  readonly #returning = new Fifo<Stay>()
  readonly #returningSuspects = new Fifo<Stay>()
  #here = 0
  #taken = 0
  #isSuspectHere = false

  /** `onFree` is called whenever one may have become free; it calls `readmit`, then `take` for as long as `isFree`. */
  constructor(max: () => number, onFree: () => void) {
    this.#max = max
    this.#onFree = onFree
  }

  /** `taken`: those that are away included. */
  get load(): { readonly here: number; readonly taken: number } {
    return { here: this.#here, taken: this.#taken }
  }

  isFree(isSuspect: boolean): boolean {
    return this.#here < this.#max() && !(isSuspect && this.#isSuspectHere)
  }

  /** Lets in who waits to come back, as far as there is room. */
  readmit(): void {
    while (this.isFree(false)) {
      const stay = (this.isFree(true) ? this.#returningSuspects.shift() : undefined) ?? this.#returning.shift()
      if (!stay) return
      if (stay.state !== 'returning') continue // it ended while it waited, or left again
      this.#enter(stay)
      stay.back?.resolve()
    }
  }

  /** There must be a free one. */
  take(isSuspect: boolean): TakenPlace {
    const stay: Stay = { isSuspect, state: 'away', back: undefined }
    this.#taken++
    this.#enter(stay)
    return {
      leave: () => {
        if (stay.state === 'away' || stay.state === 'over') return
        this.#exit(stay, 'away')
        stay.back?.resolve()
        this.#onFree()
      },
      retake: async () => {
        if (stay.state === 'away') {
          stay.state = 'returning'
          stay.back = Promise.withResolvers()
          const queue = isSuspect ? this.#returningSuspects : this.#returning
          queue.push(stay)
          this.readmit()
        }
        if (stay.state === 'returning') await stay.back?.promise
      },
      end: () => {
        if (stay.state === 'over') return
        this.#taken--
        this.#exit(stay, 'over')
        stay.back?.resolve()
        this.#onFree()
      },
    }
  }

  #enter(stay: Stay): void {
    stay.state = 'here'
    this.#here++
    if (stay.isSuspect) this.#isSuspectHere = true
  }

  #exit(stay: Stay, state: 'away' | 'over'): void {
    if (stay.state === 'here') {
      this.#here--
      if (stay.isSuspect) this.#isSuspectHere = false
    }
    stay.state = state
  }
}
