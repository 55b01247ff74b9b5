/** One timer for all approvals, armed for the first of them to expire. */
import type { Clock } from '@sluice/sdk'

/** The interval at which the wall clock is read while the timer runs, because the clock may be set. */
const LONGEST_SLEEP_MS = 60_000

export class ExpiryTimer {
  readonly #clock: Clock
  readonly #expire: () => Promise<number | undefined>
  /** Milliseconds since 1970; infinity while no approval expires. */
  #armedForMs = Number.POSITIVE_INFINITY
  #running = new AbortController()

  /** `expire` ends the approvals that have expired and resolves to the time of the next one, if there is one. It must not reject. */
  constructor(clock: Clock, expire: () => Promise<number | undefined>) {
    this.#clock = clock
    this.#expire = expire
  }

  /** Makes sure that `expire` is called at this time, in milliseconds since 1970. */
  arm(atMs: number): void {
    if (atMs >= this.#armedForMs) return
    this.#running.abort()
    this.#running = new AbortController()
    this.#armedForMs = atMs
    void this.#run(this.#running.signal)
  }

  /** Stops the timer permanently. A later `arm` has no effect. */
  stop(): void {
    this.#running.abort()
    this.#armedForMs = Number.NEGATIVE_INFINITY
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (this.#armedForMs < Number.POSITIVE_INFINITY) {
      await this.#clock.sleep(Math.min(Math.max(0, this.#armedForMs - this.#clock.nowMs()), LONGEST_SLEEP_MS), signal)
      if (signal.aborted) return
      if (this.#clock.nowMs() < this.#armedForMs) continue
      this.#armedForMs = Number.POSITIVE_INFINITY
      const nextMs = await this.#expire()
      // `arm` may have been called meanwhile, for an earlier time.
      if (signal.aborted) return
      this.#armedForMs = nextMs ?? this.#armedForMs
    }
  }
}

/** Returns the time at which the first of these approvals expires; undefined if none does. */
export function firstExpiry(approvals: readonly { readonly expiresAtMs: number | null }[]): number | undefined {
  const times = approvals.flatMap(({ expiresAtMs }) => (expiresAtMs === null ? [] : [expiresAtMs]))
  return times.length === 0 ? undefined : times.reduce((least, atMs) => Math.min(least, atMs))
}
