/** A time limit that does not run while a person is asked. */
export class PausableLimit implements Disposable {
  readonly #abort = new AbortController()
  readonly #outer: AbortSignal
  #leftMs: number
  #sinceMs = 0
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  /** `outer` aborts it, too. */
  constructor(ms: number, outer: AbortSignal) {
    this.#leftMs = ms
    this.#outer = outer
    outer.addEventListener('abort', this.#onAbort, { once: true })
    if (outer.aborted) this.#onAbort()
    this.#start()
  }

  /** Aborts when the time is over, or with the outer signal. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** True once the time is over. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Runs `work` while the limit is paused. */
  async paused<Result>(work: () => Promise<Result>): Promise<Result> {
    clearTimeout(this.#timer)
    this.#leftMs -= performance.now() - this.#sinceMs
    try {
      return await work()
    } finally {
      if (!this.#abort.signal.aborted) this.#start()
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#outer.removeEventListener('abort', this.#onAbort)
  }

  readonly #onAbort = (): void => {
    clearTimeout(this.#timer)
    this.#abort.abort(this.#outer.reason)
  }

  #start(): void {
    this.#sinceMs = performance.now()
    this.#timer = setTimeout(
      () => {
        this.#isOver = true
        this.#abort.abort()
      },
      Math.max(0, this.#leftMs),
    )
    this.#timer.unref()
  }
}
