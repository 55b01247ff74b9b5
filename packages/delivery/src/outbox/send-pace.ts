/**
 * How many sends of one account run at once. The number grows while the platform keeps up, is halved when the platform refuses or
 * stalls, and while the platform is away one send at a time probes it.
 */
import { backoffMs } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

const START = 8
/** With a platform that answers in 250 ms, 64 sends at once are 256 replies a second at most, and fewer on a busy machine. */
const MAX = 128
/** A send that takes this many times as long as usual means that the platform is at its limit. */
const SLOW_FACTOR = 2
/** Lets the usual time follow a platform that has become slower. */
const USUAL_GROWTH = 1.01
const PROBES = { firstMs: 1000, longestMs: 30_000 }
/** The longest pause of an account by `Retry-After`. A single reply waits as long as the platform asked for. */
const ASKED_MS_MAX = 60_000

export class SendPace {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #random: () => number
  #limit = START
  /** A limit below this grows by one with each send, and one above it by one with each round of sends. */
  #threshold = MAX
  #usualMs = Number.POSITIVE_INFINITY
  #pausedUntilMs = 0
  /** Failures of sends that began before the last change are known already. */
  #changedAtMs = Number.NEGATIVE_INFINITY
  #probes = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>, random: () => number = Math.random) {
    this.#clock = clock
    this.#random = random
  }

  /** How many sends may run at once; 0 during a pause. */
  get concurrency(): number {
    if (this.pauseMs > 0) return 0
    return this.#probes > 0 ? 1 : Math.floor(this.#limit)
  }

  /** The rest of a pause; 0 outside of one. */
  get pauseMs(): number {
    return Math.max(0, this.#pausedUntilMs - this.#clock.monotonicMs())
  }

  /** A send that began at `startedMs` succeeded. */
  sent(startedMs: number): void {
    if (this.#probes > 0) {
      this.#probes = 0
      this.#limit = START
      this.#threshold = MAX
    }
    const tookMs = this.#clock.monotonicMs() - startedMs
    const isSlow = tookMs > this.#usualMs * SLOW_FACTOR
    this.#usualMs = Math.max(1, Math.min(tookMs, this.#usualMs * USUAL_GROWTH))
    if (!isSlow) this.#limit = Math.min(MAX, this.#limit + (this.#limit < this.#threshold ? 1 : 1 / this.#limit))
  }

  /** The platform asked for fewer requests, or did not answer in time. */
  refused(startedMs: number, askedSecs = 0): void {
    if (startedMs < this.#changedAtMs) return
    if (this.#limit < 2) this.#pause(Math.min(ASKED_MS_MAX, askedSecs * 1000))
    this.#limit = Math.max(1, this.#limit / 2)
    this.#threshold = this.#limit
    this.#changedAtMs = this.#clock.monotonicMs()
  }

  /** The platform could not be reached. */
  away(startedMs: number, askedSecs = 0): void {
    if (startedMs < this.#changedAtMs) return
    const delayMs = backoffMs(this.#probes, PROBES, this.#random)
    this.#probes += 1
    this.#changedAtMs = this.#clock.monotonicMs()
    this.#pause(Math.max(delayMs, Math.min(ASKED_MS_MAX, askedSecs * 1000)))
  }

  #pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#clock.monotonicMs() + ms)
  }
}
