/** A time limit that does not run while a person is asked. */
export class PausableLimit implements Disposable {
  readonly #abort = new AbortController()
  #leftMs: number
  #sinceMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number) {
    this.#leftMs = ms
    this.#start()
  }

  /** Aborts when the time is over. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Runs `work` while the time stands still. */
  async paused<Result>(work: () => Promise<Result>): Promise<Result> {
    clearTimeout(this.#timer)
    this.#leftMs -= performance.now() - this.#sinceMs
    try {
      return await work()
    } finally {
      this.#start()
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #start(): void {
    this.#sinceMs = performance.now()
    this.#timer = setTimeout(() => this.#abort.abort(), Math.max(0, this.#leftMs))
    this.#timer.unref()
  }
}
