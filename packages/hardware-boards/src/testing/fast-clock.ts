/** A clock on which time passes by itself, faster than on this machine: for whole tools, whose waits nobody moves by hand. */

import { systemClock } from '@sluice/kit'
import { type TestClock, testClock } from '@sluice/testkit/clock'

export function fastClock(factor: number): TestClock {
  const startMs = testClock().nowMs()
  const startedMs = performance.now()
  const passedMs = (): number => (performance.now() - startedMs) * factor
  const sleep: TestClock['sleep'] = (ms, signal) => systemClock.sleep(ms / factor, signal)
  return { nowMs: () => startMs + passedMs(), monotonicMs: passedMs, sleep, advance: (ms) => sleep(ms), sleeping: 0 }
}
