/** Waits for a condition for as long as a busy machine may need. */
import { vi } from 'vitest'

/** Resolves with what `condition` returns once it no longer throws. */
export const waitFor = <Result>(condition: () => Result | Promise<Result>): Promise<Result> =>
  vi.waitFor(condition, { timeout: 20_000, interval: 10 })
