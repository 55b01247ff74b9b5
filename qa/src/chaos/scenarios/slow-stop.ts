/** Sends SIGTERM while the model never answers: the daemon ends in time, and interrupted turns do not count as failed attempts. */
import { listening, setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'
import { deliverMessages, kindOf } from './write-message.ts'

const MESSAGES = 20
/** The daemon drains for at most ten seconds. */
const STOP_MS_MAX = 12_000

export const slowStop: Scenario = async (options) => {
  let isUp = false
  const stage = await setStage({ ...options, answer: () => (isUp ? Promise.resolve() : new Promise(() => {})) })
  const { world } = stage
  try {
    const life = stage.begin()
    const url = await listening(life)
    const kind = kindOf(world, 'chatapp')
    await deliverMessages(
      stage,
      url,
      kind,
      Array.from({ length: MESSAGES }, (_, index) => `155500000${10 + index}`),
    )
    const startMs = performance.now()
    await life.end('SIGTERM')
    const stoppedMs = Math.round(performance.now() - startMs)
    isUp = true
    await stage.calmLife(async () => {})
    const { store, violations } = await stage.outcome()
    const attempts = Math.max(...store.inbox.map((row) => row.attempts))
    return {
      numbers: { stoppedMs, attempts },
      violations: [
        ...violations,
        ...unless(stoppedMs < STOP_MS_MAX, 'stop', `SIGTERM took ${stoppedMs} ms`),
        ...unless(attempts === 1, 'stop', `an attempt that SIGTERM interrupted was counted: a message has ${attempts} attempts`),
      ],
    }
  } finally {
    await stage.close()
  }
}
