// Repeats a round that other processes disturbed, within a time budget for the whole run.
import { setTimeout as sleep } from 'node:timers/promises'
import { familyCpuSecs, machineCpuSecs } from './machine.mjs'

const QUIET_WINDOW_MS = 300
const QUIET_WAIT_MAX_MS = 10_000
const TRIES_MAX = 3

/** Runs `work`; `otherCores` is the CPU that processes other than this one and its descendants used meanwhile, in cores. */
async function watched(work) {
  const others = () => machineCpuSecs() - familyCpuSecs(process.pid)
  const [start, before] = [performance.now(), others()]
  const result = await work()
  const secs = (performance.now() - start) / 1000
  return { result, otherCores: Math.max(0, (others() - before) / secs) }
}

/** `budgetMs` limits the total time of waiting and repeating. */
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
    /** Runs `work` until a try is undisturbed, at most three times. Resolves to the least disturbed try. */
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
