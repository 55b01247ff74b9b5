/** A queue that runs one task at a time, in the order of the calls. */
import { AppError, type ErrorCode } from '@sluice/sdk'
import { untilAborted } from '../time/until-aborted.ts'

export interface SerialQueueOptions {
  /** Completes the sentence of a refusal: "Too many calls wait for …". */
  readonly name: string
  /** The largest number of tasks here at once, the running one included. */
  readonly tasksMax: number
  /** The code of a refusal; `unavailable` unless given. */
  readonly refusal?: ErrorCode
  /** Tells a refused caller when to try again; 1 unless given. */
  readonly retryAfterSecs?: number
}

const ABORTED = 'The call was aborted'

export class SerialQueue {
  readonly #options: SerialQueueOptions
  /** Resolves when the newest task and all tasks before it have ended. Never rejects. */
  #last: Promise<void> = Promise.resolve()
  #tasks = 0

  constructor(options: SerialQueueOptions) {
    this.#options = options
  }

  /** True while no task runs or waits. */
  get isIdle(): boolean {
    return this.#tasks === 0
  }

  /**
   * Runs `task` after every earlier task has ended, however it ended, and settles as `task` does. Throws the refusal when the
   * queue is full, and `aborted` when `signal` aborts before the task starts; such a task never runs. A task that has
   * started handles the signal itself.
   */
  async run<Result>(task: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const { name, tasksMax, refusal = 'unavailable', retryAfterSecs = 1 } = this.#options
    if (signal?.aborted) throw new AppError('aborted', ABORTED)
    if (this.#tasks >= tasksMax) throw new AppError(refusal, `Too many calls wait for ${name}`, { retryAfterSecs })
    const { promise, resolve } = Promise.withResolvers<void>()
    const before = this.#last
    this.#last = promise
    this.#tasks++
    try {
      if (this.#tasks > 1) await (signal ? untilAborted(before, signal, ABORTED) : before)
      return await task()
    } finally {
      this.#tasks--
      // A caller that aborts while it waits must not let the next task overtake the ones before.
      void before.then(resolve)
    }
  }
}
