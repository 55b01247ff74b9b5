/** All platforms refuse requests while messages arrive and the daemon is killed: every reply is sent once after the outage. */
import { setTimeout as sleep } from 'node:timers/promises'
import { listening, setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'

export interface PlatformOutageOptions {
  /** How often the daemon is started and killed during the outage. */
  readonly lives: number
  /** The time between the last message and the end of each life. */
  readonly restMs: number
}

const LOAD = { count: 40, ms: 600 }
const AFTER = { count: 5, ms: 200 }

export const platformOutage =
  ({ lives, restMs }: PlatformOutageOptions): Scenario =>
  async (options) => {
    const stage = await setStage({ ...options, attemptsMax: lives + 2 })
    const { world, traffic, signal } = stage
    try {
      await stage.calmLife((url) => traffic.one(url, signal))
      world.faults.away = true
      for (let life = 0; life < lives; life++) {
        const daemon = stage.begin()
        await traffic.run(await listening(daemon), LOAD, signal)
        await sleep(restMs)
        await daemon.end('SIGKILL')
      }
      const refused = world.recorder.seen.filter((event) => event.type === 'sending' && event.fault === 'away').length
      world.faults.away = false
      await stage.calmLife((url) => traffic.run(url, AFTER, signal))
      const { history, store, violations } = await stage.outcome()
      const dead = store.outbox.filter(({ state }) => state === 'dead').length
      return {
        numbers: { messages: history.messages.length, refused, dead },
        violations: [
          ...violations,
          ...unless(refused > 0, 'outage', 'no reply was sent during the outage'),
          ...unless(dead === 0, 'outage', `${dead} replies became dead letters`),
        ],
      }
    } finally {
      await stage.close()
    }
  }
