/**
 * Watches all deadlines of the agent with one sleep. Every turn and every piece of a reply adds or moves deadlines, so that a timer
 * for each would cost more than the work it guards.
 */

import { catchUpMs } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

export interface Deadline {
  /** The time on the monotonic clock. It may be moved to a later time. */
  atMs: number
  /** Called once after the deadline, which is then no longer watched. Must not throw. */
  readonly expire: () => void
}

export class Deadlines {
  readonly #clock: Clock
  readonly #watched = new Set<Deadline>()
  #wakeAtMs = Number.POSITIVE_INFINITY
  #sleep = new AbortController()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Calls `expire` after `ms`. */
  watch(ms: number, expire: () => void): Deadline {
    const deadline: Deadline = { atMs: this.#clock.monotonicMs() + ms, expire }
    this.#add(deadline)
    return deadline
  }

  /** Pauses a deadline. Returns a function that resumes it, which must not be called after `forget`. */
  pause(deadline: Deadline): () => void {
    const leftMs = deadline.atMs - this.#clock.monotonicMs()
    this.#watched.delete(deadline)
    return () => {
      deadline.atMs = this.#clock.monotonicMs() + leftMs
      this.#add(deadline)
    }
  }

  /** Moves the deadline to `ms` from now, which must not be earlier than before. */
  postpone(deadline: Deadline, ms: number): void {
    deadline.atMs = this.#clock.monotonicMs() + ms
  }

  forget(deadline: Deadline): void {
    this.#watched.delete(deadline)
  }

  #add(deadline: Deadline): void {
    this.#watched.add(deadline)
    if (deadline.atMs < this.#wakeAtMs) void this.#sleepUntil(deadline.atMs)
  }

  async #sleepUntil(atMs: number): Promise<void> {
    this.#sleep.abort()
    const sleep = new AbortController()
    this.#sleep = sleep
    this.#wakeAtMs = atMs
    await this.#clock.sleep(atMs - this.#clock.monotonicMs(), sleep.signal)
    if (sleep.signal.aborted) return
    const nowMs = this.#clock.monotonicMs()
    // After a suspend of the machine, the answer of the model may be in a socket that is read after this timer.
    const moreMs = catchUpMs(atMs, nowMs)
    if (moreMs > 0) await this.#sleepUntil(nowMs + moreMs)
    else this.#wake()
  }

  #wake(): void {
    this.#wakeAtMs = Number.POSITIVE_INFINITY
    const nowMs = this.#clock.monotonicMs()
    let nextMs = Number.POSITIVE_INFINITY
    for (const deadline of [...this.#watched]) {
      if (deadline.atMs <= nowMs) {
        this.#watched.delete(deadline)
        deadline.expire()
      } else nextMs = Math.min(nextMs, deadline.atMs)
    }
    if (nextMs < this.#wakeAtMs) void this.#sleepUntil(nextMs)
  }
}
