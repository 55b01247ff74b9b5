/**
 * The places at work: only so many at once. Who leaves one for a while, as to wait for a person, comes back before anybody
 * new is let in.
 */
import { LinkedQueue, type Place } from '@sluice/kit'

export interface Slot {
  /** Lets another job start while this one still holds its lane, as when all that is left is to wait. */
  leave(): void
  /** Resolves once it has a slot again, at once if it holds one. */
  retake(): Promise<void>
}

export interface TakenSlot extends Slot {
  /** Gives it up for good, wherever its holder is. */
  end(): void
}

/** So many may be away at once; one more keeps its slot, since each that waits costs the memory of its conversation. */
export const AWAY_MAX = 1000

interface Seat {
  state: 'held' | 'away' | 'returning' | 'over'
  /** Of one that is returning. */
  place: Place<Seat> | undefined
  back: PromiseWithResolvers<void> | undefined
}

export class Slots {
  readonly #max: () => number
  readonly #onFree: () => void
  readonly #returning = new LinkedQueue<Seat>()
  readonly #counts = { held: 0, away: 0, returning: 0, over: 0 }

  /** `onFree` is called whenever one may have become free; it calls `readmit`, then `take` for as long as `hasFree`. */
  constructor(max: () => number, onFree: () => void) {
    this.#max = max
    this.#onFree = onFree
  }

  /** How many are held, and how many wait to come back. */
  get load(): { readonly held: number; readonly returning: number } {
    return this.#counts
  }

  /** For somebody new. */
  get hasFree(): boolean {
    return this.#counts.returning === 0 && this.#counts.held < this.#max()
  }

  /** Lets in who waits to come back, as far as there is room. */
  readmit(): void {
    while (this.#counts.returning > 0 && this.#counts.held < this.#max()) {
      const seat = this.#returning.shift()
      if (!seat) return
      this.#move(seat, 'held')
      seat.back?.resolve()
    }
  }

  /** There must be room. */
  take(): TakenSlot {
    const seat: Seat = { state: 'held', place: undefined, back: undefined }
    this.#counts.held++
    return { leave: () => this.#leave(seat), retake: () => this.#retake(seat), end: () => this.#end(seat) }
  }

  #leave(seat: Seat): void {
    if (seat.state !== 'held' || this.#counts.away + this.#counts.returning >= AWAY_MAX) return
    this.#move(seat, 'away')
    this.#onFree()
  }

  async #retake(seat: Seat): Promise<void> {
    if (seat.state === 'away' && this.hasFree) this.#move(seat, 'held')
    else if (seat.state === 'away') {
      this.#move(seat, 'returning')
      seat.place = this.#returning.push(seat)
      seat.back = Promise.withResolvers()
    }
    if (seat.state === 'returning') await seat.back?.promise
  }

  #end(seat: Seat): void {
    if (seat.state === 'over') return
    if (seat.state === 'returning' && seat.place) this.#returning.remove(seat.place)
    this.#move(seat, 'over')
    seat.back?.resolve()
    this.#onFree()
  }

  #move(seat: Seat, state: Seat['state']): void {
    this.#counts[seat.state]--
    this.#counts[state]++
    seat.state = state
  }
}
