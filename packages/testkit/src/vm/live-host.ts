/** A host for cases of the virtual machine: everything in memory, but the time, which is the real one. */
import type { Clock, Host } from '@sluice/sdk'
import { type TestHostOverrides, testHost } from '../host.ts'

export const liveClock: Clock = {
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

/** `keyValue` of an earlier one makes it the same daemon after a restart. */
export const liveHost = (overrides: Omit<TestHostOverrides, 'clock'> = {}): Host => ({ ...testHost(overrides), clock: liveClock })
