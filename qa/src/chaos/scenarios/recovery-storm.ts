/** Thousands of messages wait when the daemon starts: all of them are processed, never more at once than the bound. */
import { setTimeout as sleep } from 'node:timers/promises'
import { listening, setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'
import { deliverMessages, kindOf } from './write-message.ts'

const SENDERS = 200
const BATCH = 100
const MODEL_MS = 5
/** The default of `max_concurrent_turns`. */
const AT_ONCE_MAX = 8

export const recoveryStorm =
  ({ messages: count }: { readonly messages: number }): Scenario =>
  async (options) => {
    let isUp = false
    const stage = await setStage({ ...options, answer: () => (isUp ? sleep(MODEL_MS) : new Promise(() => {})) })
    const { world } = stage
    const { model } = world
    const kind = kindOf(world, 'chatapp')
    try {
      const life = stage.begin()
      const url = await listening(life)
      for (let first = 0; first < count; first += BATCH) {
        const senders = Array.from({ length: BATCH }, (_, index) => `1555${5_550_000 + ((first + index) % SENDERS)}`)
        await deliverMessages(stage, url, kind, senders)
      }
      await life.end('SIGKILL')
      isUp = true
      const startMs = performance.now()
      await stage.calmLife(async () => {})
      const recoveredMs = Math.round(performance.now() - startMs)
      const { store, violations } = await stage.outcome()
      const done = store.inbox.filter(({ state }) => state === 'done').length
      return {
        numbers: { done, atOnceMax: model.atOnceMax, recoveredMs },
        violations: [
          ...violations,
          ...unless(done === count, 'storm', `${done} of ${count} messages are done`),
          ...unless(model.atOnceMax <= AT_ONCE_MAX, 'storm', `${model.atOnceMax} turns ran at once; the bound is ${AT_ONCE_MAX}`),
        ],
      }
    } finally {
      await stage.close()
    }
  }
