/** One after the other, in the order they came; who is aborted while it waits never runs. Work that runs sees to its own abort. */

import { untilAborted } from '@sluice/kit'
import { AppError } from '@sluice/sdk'

export interface Lane {
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>
}

const WAITING_MAX = 64
const ABORTED = 'The call was aborted'

/** Throws `unavailable` when too many wait, and `aborted`. */
export function createLane(name: string): Lane {
  let last: Promise<void> = Promise.resolve()
  /** The one that runs included. */
  let waiting = 0
  return {
    async run(signal, work) {
      if (signal.aborted) throw new AppError('aborted', ABORTED)
      if (waiting >= WAITING_MAX) throw new AppError('unavailable', `Too many calls wait for ${name}`, { retryAfterSecs: 1 })
      const turn = Promise.withResolvers<void>()
      const before = last
      last = turn.promise
      waiting++
      try {
        if (waiting > 1) await untilAborted(before, signal, ABORTED)
        return await work()
      } finally {
        waiting--
        // Who gives up while it waits lets the next one wait for those before.
        void before.then(turn.resolve)
      }
    },
  }
}
