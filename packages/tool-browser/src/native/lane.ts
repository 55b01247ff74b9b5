/** Turns at a client's page: who comes first goes first, and the queue has an end. */
import { AppError } from '@sluice/sdk'

const WAITING_MAX = 8

export class Lane {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0

  get isIdle(): boolean {
    return this.#waiting === 0
  }

  /** Runs `task` once all before it have ended, whatever their end. Throws `rate_limited` if too many wait. */
  async run<Result>(task: () => Promise<Result>): Promise<Result> {
    if (this.#waiting >= WAITING_MAX)
      throw new AppError('rate_limited', 'too many browser actions of this client wait', { retryAfterSecs: 5 })
    this.#waiting++
    const mine = this.#last.then(task).finally(() => {
      this.#waiting--
    })
    this.#last = mine.catch(() => undefined)
    return mine
  }
}
