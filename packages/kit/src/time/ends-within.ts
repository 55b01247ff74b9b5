/** Waits for work that should end soon, but no longer than a limit. */
import type { Clock } from '@sluice/sdk'
import { signalScope } from './signal-scope.ts'

/**
 * Resolves to true once `work` has ended, and to false after `ms` or when `signal` aborts, whichever comes first. Throws what `work` throws
 * before that; a later error is ignored. Does not stop the work, and leaves neither a timer nor a listener behind.
 */
export async function endsWithin(work: Promise<unknown>, ms: number, clock: Pick<Clock, 'sleep'>, signal?: AbortSignal): Promise<boolean> {
  using scope = signalScope([signal])
  return await Promise.race([work.then(() => true), clock.sleep(ms, scope.signal).then(() => false)])
}
