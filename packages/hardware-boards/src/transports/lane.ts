/** One after the other, in the order they came; who is aborted while it waits never runs. */
import { AppError } from '@sluice/sdk'

export interface Lane {
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>
}

const WAITING_MAX = 64

/** Throws `unavailable` when too many wait, and `aborted`. */
export function createLane(name: string): Lane {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  return {
    async run(signal, work) {
      if (waiting >= WAITING_MAX) throw new AppError('unavailable', `Too many calls wait for ${name}`, { retryAfterSecs: 1 })
      const aborted = Promise.withResolvers<never>()
      const abort = () => aborted.reject(new AppError('aborted', 'The call was aborted'))
      if (signal.aborted) abort()
      signal.addEventListener('abort', abort, { once: true })
      waiting++
      const done = last.then(async () => {
        waiting--
        if (signal.aborted) return aborted.promise
        return work()
      })
      last = done.catch(() => undefined)
      try {
        return await Promise.race([done, aborted.promise])
      } finally {
        signal.removeEventListener('abort', abort)
      }
    },
  }
}
