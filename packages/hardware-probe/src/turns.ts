/** One visit at a time: a debug port has room for one. */

import { untilAborted } from '@sluice/kit'
import { AppError } from '@sluice/sdk'

const WAITING_MAX = 16

export type InTurn = <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>

/** Runs work in the order it came. Throws `unavailable` when too much waits, `aborted` for what was aborted while it waited. */
export function createTurns(): InTurn {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  return async (signal, work) => {
    if (waiting >= WAITING_MAX) throw new AppError('unavailable', 'Too many readings wait for the debug port', { retryAfterSecs: 1 })
    waiting++
    const before = last
    const mine = Promise.withResolvers<void>()
    last = before.then(() => mine.promise)
    try {
      await untilAborted(before, signal, 'The reading was aborted')
      return await work()
    } finally {
      waiting--
      mine.resolve()
    }
  }
}
