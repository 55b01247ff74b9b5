/**
 * An ultrasonic sensor with a trigger line and an echo line. The length of the echo, by the kernel's interrupt clock, gives
 * the distance.
 */
import type { EdgeEvent, Level } from '@sluice/hardware'
import type { Clock } from '@sluice/sdk'

/** Metres per nanosecond, for the way there and back, at 20 °C. */
const METRES_PER_NS = 343.2e-9 / 2
/** These sensors measure nothing farther away, and send a longer echo when nothing is there. */
const RANGE = 4
/** The time after which the last echo has died away. */
const PAUSE_MS = 60

/** A sensor that sends no echo at all, because it is broken or missing, reports nothing: its last reading grows stale. */
export class EchoTimer {
  readonly #clock: Clock
  readonly #setTrigger: (level: Level) => void
  readonly #onDistance: (distance: number, takenMs: number) => void
  #pingedAtMs = Number.NEGATIVE_INFINITY
  #risenAtNs: bigint | undefined

  /**
   * `clock` must be the clock of the edge events. `setTrigger` may throw. `onDistance` gets metres and the time of the ping;
   * the distance is `Infinity` when nothing is within range.
   */
  constructor(clock: Clock, setTrigger: (level: Level) => void, onDistance: (distance: number, takenMs: number) => void) {
    this.#clock = clock
    this.#setTrigger = setTrigger
    this.#onDistance = onDistance
  }

  /** Sends a ping unless the last one was sent less than 60 ms ago. Throws the error of `setTrigger`. */
  ping(): void {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#pingedAtMs < PAUSE_MS) return
    this.#pingedAtMs = nowMs
    this.#risenAtNs = undefined
    // The sensor needs a pulse of at least 10 µs, and two system calls take longer than that.
    this.#setTrigger(1)
    this.#setTrigger(0)
  }

  /** Takes an edge of the echo line. */
  edge({ edge, atNs }: EdgeEvent): void {
    if (edge === 'rising') {
      // An edge from before the ping arrives late when this process was blocked; its reading would count as a newer one.
      this.#risenAtNs = Number(atNs) / 1e6 < this.#pingedAtMs ? undefined : atNs
      return
    }
    if (this.#risenAtNs === undefined) return
    const distance = Number(atNs - this.#risenAtNs) * METRES_PER_NS
    this.#risenAtNs = undefined
    this.#onDistance(distance > RANGE ? Number.POSITIVE_INFINITY : distance, this.#pingedAtMs)
  }
}
