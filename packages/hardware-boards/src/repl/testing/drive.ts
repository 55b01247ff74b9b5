/** Runs work that depends on the test clock to its end. The clock advances only while nothing else happens. */
import type { TestClock } from '@sluice/testkit/clock'

const QUIET_ROUNDS = 8
const STEP_MS = 20

export async function drive<Result>(clock: TestClock, work: Promise<Result>): Promise<Result> {
  let over = false
  const end = () => {
    over = true
  }
  work.then(end, end)
  while (!over) {
    for (let round = 0; round < QUIET_ROUNDS && !over; round++) await new Promise((resolve) => setImmediate(resolve))
    if (!over) await clock.advance(STEP_MS)
  }
  return work
}
