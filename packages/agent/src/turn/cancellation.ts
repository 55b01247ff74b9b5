/** A cancellation with one reason, which every waiter receives. */
import type { AppError } from '@sluice/sdk'

export class Cancellation {
  /** Made when its signal is first read, which most turns never do. */
  #controller: AbortController | undefined
  readonly #listeners = new Set<(reason: AppError) => void>()
  #reason: AppError | undefined

  /** Aborts with the reason. Pass it to work that takes a signal; use `race` to wait. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#reason) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  get reason(): AppError | undefined {
    return this.#reason
  }

  /** Cancels with a reason. Later reasons are ignored. */
  cancel(reason: AppError): void {
    if (this.#reason) return
    this.#reason = reason
    // Listeners run before the signal aborts, so that waiters receive the reason and not an error of the aborted work.
    for (const listener of this.#listeners) listener(reason)
    this.#listeners.clear()
    this.#controller?.abort(reason)
  }

  /** Calls `listener` when cancelled. Returns an unsubscribe function. */
  onCancel(listener: (reason: AppError) => void): () => void {
    if (this.#reason) listener(this.#reason)
    else this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  throwIfCancelled(): void {
    if (this.#reason) throw this.#reason
  }

  /** Settles as `work` does, or rejects with the reason when cancelled; the result of `work` is then ignored. */
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
