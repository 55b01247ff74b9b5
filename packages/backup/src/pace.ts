/** Lets the disk and the processor rest most of the time, so that a daemon on the same machine hardly notices the work. */
import { setTimeout as sleep } from 'node:timers/promises'

/** How long each rest is, compared with the work before it. */
const REST_RATIO = 8
const REST_MS_MAX = 500

export class Pace {
  #sinceMs = performance.now()

  /** Rests in proportion to the time since the last rest. Call it after each piece of work. */
  async rest(): Promise<void> {
    await sleep(Math.min(REST_MS_MAX, REST_RATIO * (performance.now() - this.#sinceMs)))
    this.#sinceMs = performance.now()
  }
}
