/** Waiting for work that others wait for, too. */
import { AppError } from '@sluice/sdk'

/** As `work`, or `aborted` as soon as `signal` aborts; the work itself goes on. */
export async function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(new AppError('aborted', 'The wait was cut off'))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([promise, work])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
