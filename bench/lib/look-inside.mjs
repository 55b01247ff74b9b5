// Reads the memory and the counts of another process; see inside.mjs.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

const ANSWER_MAX_MS = 10_000
const POLL_MS = 5

/** Returns the options of Node that make a process inspectable, and the function that inspects it. */
export function inspectable(scratch, { blocks = false, counts = false } = {}) {
  const to = join(scratch, 'inside.json')
  const module = pathToFileURL(join(import.meta.dirname, 'inside.mjs'))
  return {
    nodeArgs: ['--expose-gc', '--import', `${module}?to=${encodeURIComponent(to)}${blocks ? '&blocks' : ''}${counts ? '&counts' : ''}`],
    /** Collects garbage, then resolves to `{rss, heapUsed, external, longestBlockMs}`, sizes in bytes; with `counts` also `{signals, timers, listeners}`. */
    async ask(pid) {
      rmSync(to, { force: true })
      process.kill(pid, 'SIGUSR2')
      const deadline = performance.now() + ANSWER_MAX_MS
      while (!existsSync(to)) {
        if (performance.now() > deadline) throw new Error('the process did not report its memory')
        await sleep(POLL_MS)
      }
      return JSON.parse(readFileSync(to, 'utf8'))
    },
  }
}
