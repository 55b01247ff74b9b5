/** Suspends the machine under load: no message is lost, no reply is sent twice, and answers that arrived meanwhile count. */
import { setTimeout as sleep } from 'node:timers/promises'
import { listening, setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'

const LOAD = { count: 60, ms: 1200 }
const SUSPEND_AFTER_MS = 500

/** After more than 30 s, the time limit of every running send has passed. */
export const suspend =
  ({ ms }: { readonly ms: number }): Scenario =>
  async (options) => {
    const stage = await setStage(options)
    const { traffic, signal } = stage
    try {
      await stage.calmLife(async (url) => {
        await traffic.one(url, signal)
      })
      const life = stage.begin()
      const posting = traffic.run(await listening(life), LOAD, signal)
      await sleep(SUSPEND_AFTER_MS)
      await life.suspend(ms)
      await posting
      await life.end('SIGTERM')
      await stage.calmLife((url) => traffic.run(url, { count: 0, ms: 0 }, signal))
      const { history, store, violations } = await stage.outcome()
      const ambiguous = store.outbox.filter(({ state }) => state === 'ambiguous').length
      return {
        numbers: { messages: history.messages.length, ambiguous },
        violations: [
          ...violations,
          ...unless(ambiguous === 0, 'suspend', `${ambiguous} replies became ambiguous because of the suspension`),
        ],
      }
    } finally {
      await stage.close()
    }
  }
