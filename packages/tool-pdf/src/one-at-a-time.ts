/** Turns at something there is one of: who comes first goes first, and the queue has an end. */
import { AppError } from '@sluice/sdk'

const WAITING_MAX = 32
const RETRY_AFTER_SECS = 5

export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0

  /**
   * Runs `task` once all before it have ended, whatever their end. Throws `unavailable` if too many wait, and `aborted`
   * as soon as `signal` aborts; a task that has begun sees to its own end then, and is still waited for by the next.
   */
  async run<Result>(task: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    if (this.#waiting >= WAITING_MAX) {
      throw new AppError('unavailable', 'too many PDFs wait to be read', { retryAfterSecs: RETRY_AFTER_SECS })
    }
    this.#waiting++
    const { promise: abort, reject } = Promise.withResolvers<never>()
    const onAbort = () => reject(new AppError('aborted', 'reading the PDF was aborted'))
    const mine = this.#last.then(async () => {
      signal.throwIfAborted()
      return task()
    })
    const leave = () => {
      this.#waiting--
    }
    this.#last = mine.then(leave, leave)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    try {
      return await Promise.race([abort, mine])
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }
}
