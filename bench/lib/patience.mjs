// Repeats a round that other processes disturbed, within one budget of time for the whole run.
import { setTimeout as sleep } from 'node:timers/promises'
import { familyCpuSecs, machineCpuSecs } from './machine.mjs'

const QUIET_WINDOW_MS = 300
const QUIET_WAIT_MAX_MS = 10_000
const TRIES_MAX = 3

/** CPU that others than this process and its descendants used while `work` ran, in cores. */
async function watched(work) {
  const others = () => machineCpuSecs() - familyCpuSecs(process.pid)
  const [start, before] = [performance.now(), others()]
  const result = await work()
  const secs = (performance.now() - start) / 1000
  return { result, otherCores: Math.max(0, (others() - before) / secs) }
}

export function createPatience({ maxOtherCores, budgetMs }) {
  let leftMs = budgetMs

  async function untilQuiet() {
    const deadline = performance.now() + Math.min(leftMs, QUIET_WAIT_MAX_MS)
    for (;;) {
      const start = performance.now()
      const { otherCores } = await watched(() => sleep(QUIET_WINDOW_MS))
      if (otherCores <= maxOtherCores || start >= deadline) return
      leftMs -= performance.now() - start
    }
  }

  return {
    /** The outcome of the quietest try, the first quiet one if there is one. */
    async round(work) {
      let quietest
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        await untilQuiet()
        const start = performance.now()
        const outcome = await watched(work)
        if (!quietest || outcome.otherCores < quietest.otherCores) quietest = outcome
        if (quietest.otherCores <= maxOtherCores || leftMs <= 0) break
        leftMs -= performance.now() - start
      }
      return quietest
    },
  }
}
