/** Waits for work that cannot be stopped, or that other callers share. */
import { AppError } from '@sluice/sdk'

/** Settles like `work`, or throws `aborted` with `detail` as soon as `signal` aborts. The work itself continues. */
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
