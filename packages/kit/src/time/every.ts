/** Something done at a steady pace, for all connections together. */
import type { Clock } from '@sluice/sdk'

/** Calls `task`, which must not throw, each `ms` until the signal aborts. */
export async function every(clock: Clock, ms: number, signal: AbortSignal, task: () => void): Promise<void> {
  for (;;) {
    await clock.sleep(ms, signal)
    if (signal.aborted) return
    task()
  }
}
