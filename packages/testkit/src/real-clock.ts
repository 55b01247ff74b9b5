/** The clock of this machine, for tests that go through the kernel or a process of their own. */
import type { Clock } from '@sluice/sdk'

export const realClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const end = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      timer.unref()
      signal?.addEventListener('abort', end)
    }),
}
