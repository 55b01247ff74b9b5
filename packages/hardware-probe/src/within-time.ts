/** Work with an end: by a time-out, by the caller, or by itself. */
import { AppError, type Clock } from '@sluice/sdk'

export interface Limit {
  readonly clock: Clock
  readonly ms: number
  readonly signal: AbortSignal
  /** What is too slow, as the beginning of a sentence. */
  readonly what: string
}

/** Gives the work a signal whose reason is an `AppError`: `aborted` or `upstream_timeout`. */
export async function withinTime<Result>(
  { clock, ms, signal, what }: Limit,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limit = new AbortController()
  const ended = new AbortController()
  const stop = () => limit.abort(new AppError('aborted', 'The reading was aborted'))
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true, signal: ended.signal })
  void clock.sleep(ms, ended.signal).then(() => {
    if (!ended.signal.aborted) limit.abort(new AppError('upstream_timeout', `${what} took longer than ${ms / 1000} s`))
  })
  try {
    limit.signal.throwIfAborted()
    return await work(limit.signal)
  } finally {
    ended.abort()
  }
}
