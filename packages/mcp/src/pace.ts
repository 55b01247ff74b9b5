/** A bound on how often a server can make this program work. */
import type { Clock } from '@sluice/sdk'

export interface PaceOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The units that cause no delay in each period. */
  readonly unitsMax: number
  readonly periodMs: number
}

export class Pace {
  readonly #options: PaceOptions
  #sinceMs: number
  #spent = 0

  constructor(options: PaceOptions) {
    this.#options = options
    this.#sinceMs = options.clock.monotonicMs()
  }

  /** Counts `units`, and returns the milliseconds to wait before the next ones: none, or what is left of the period. */
  delayMs(units = 1): number {
    const { clock, unitsMax, periodMs } = this.#options
    const pastMs = clock.monotonicMs() - this.#sinceMs
    if (pastMs >= periodMs) {
      this.#sinceMs += pastMs
      this.#spent = 0
    }
    this.#spent += units
    return this.#spent > unitsMax ? this.#sinceMs + periodMs - clock.monotonicMs() : 0
  }
}

/** The messages of a server that are read without a delay in a second, answers to requests excluded. */
const MESSAGES_PER_SECOND = 2000
/** A longer message counts as several. */
const MESSAGE_BYTES = 8192

/** The pace at which the output of a server is read. */
export const readingPace = (clock: PaceOptions['clock']): Pace => new Pace({ clock, unitsMax: MESSAGES_PER_SECOND, periodMs: 1000 })

/** The units of a message, or of several, for the pace of reading. */
export const readingUnits = (bytes: number, messages = 1): number => messages + Math.floor(bytes / MESSAGE_BYTES)
