/** Sends SIGTERM while messages arrive: the daemon ends in time, and no acknowledged message is lost. */
import { setTimeout as sleep } from 'node:timers/promises'
import { listening, setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'

const LOAD = { count: 300, ms: 1500 }
const TERM_AFTER_MS = 800
/** The daemon drains for at most ten seconds. */
const STOP_MS_MAX = 11_000

export const sigtermUnderLoad: Scenario = async (options) => {
  const stage = await setStage(options)
  const { traffic, signal } = stage
  try {
    await stage.calmLife((url) => traffic.one(url, signal))
    const life = stage.begin()
    const over = new AbortController()
    const posting = traffic.run(await listening(life), LOAD, AbortSignal.any([signal, over.signal]))
    await sleep(TERM_AFTER_MS)
    const startMs = performance.now()
    await life.end('SIGTERM')
    const stoppedMs = Math.round(performance.now() - startMs)
    over.abort()
    await posting
    const unacknowledged = traffic.waiting
    await stage.calmLife((url) => traffic.run(url, { count: 0, ms: 0 }, signal))
    const { history, violations } = await stage.outcome()
    return {
      numbers: { stoppedMs, messages: history.messages.length, unacknowledged },
      violations: [...violations, ...unless(stoppedMs < STOP_MS_MAX, 'stop', `SIGTERM took ${stoppedMs} ms`)],
    }
  } finally {
    await stage.close()
  }
}
