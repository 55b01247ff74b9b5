/** A piece of work that can be ended from outside, once, for one reason; whoever waits for it is told that reason. */
import type { AppError } from '@sluice/sdk'

export class Cancellation {
  readonly #controller = new AbortController()
  readonly #listeners = new Set<(reason: AppError) => void>()
  #reason: AppError | undefined

  /** Aborts with the reason. For what takes a signal; waiting goes by `race`. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get reason(): AppError | undefined {
    return this.#reason
  }

  /** The first reason stands. */
  cancel(reason: AppError): void {
    if (this.#reason) return
    this.#reason = reason
    // Before the signal: what the aborted work then rejects with must not be what those who wait hear first.
    for (const listener of this.#listeners) listener(reason)
    this.#listeners.clear()
    this.#controller.abort(reason)
  }

  /** Calls `listener` when cancelled, unless the returned function is called before. */
  onCancel(listener: (reason: AppError) => void): () => void {
    if (this.#reason) listener(this.#reason)
    else this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  throwIfCancelled(): void {
    if (this.#reason) throw this.#reason
  }

  /** Settles as `work` does, or rejects with the reason as soon as there is one; `work` may then go on, unheeded. */
  race<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const forget = this.onCancel(reject)
      work.then(
        (value) => {
          forget()
          resolve(value)
        },
        (error) => {
          forget()
          reject(error)
        },
      )
    })
  }
}
