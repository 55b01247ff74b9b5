/** A clock that runs by itself, faster than real time, for tests of whole tools that cannot advance it. */
import { systemClock } from '@sluice/kit'
import { type TestClock, testClock } from '@sluice/testkit/clock'

export function fastClock(factor: number): TestClock {
  const startMs = testClock().nowMs()
  const startedMs = performance.now()
  const passedMs = (): number => (performance.now() - startedMs) * factor
  let jumpedMs = 0
  const sleep: TestClock['sleep'] = (ms, signal) => systemClock.sleep(ms / factor, signal)
  return {
    nowMs: () => startMs + passedMs() + jumpedMs,
    monotonicMs: passedMs,
    sleep,
    advance: (ms) => sleep(ms),
    jump(ms) {
      jumpedMs += ms
    },
    sleeping: 0,
  }
}
