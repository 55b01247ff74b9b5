/** Waiting for work that cannot be stopped, or that others wait for, too. */
import { AppError } from '@sluice/sdk'

/** As `work`, or `aborted` with this sentence as soon as `signal` aborts; the work itself goes on. */
export async function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal, detail: string): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(new AppError('aborted', detail))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([promise, work])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
