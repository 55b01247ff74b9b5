/** Ending a process together with everything it started and did not detach. */
import { readdir, readFile } from 'node:fs/promises'
import type { Clock } from '@sluice/sdk'

/** Between SIGTERM and SIGKILL. */
const KILL_AFTER_MS = 2_000
/** Most are gone at once: the first looks come soon, later ones at leisure. */
const POLL_MS_MIN = 1
const POLL_MS_MAX = 25

/**
 * Sends the group led by `pid` SIGTERM and, where some of it lives two seconds later, SIGKILL. Resolves once it is gone
 * or has got the latter; at once for a group that is gone already.
 */
export async function stopGroup(pid: number, clock: Clock): Promise<void> {
  if (!signal(pid, 'SIGTERM')) return
  const endMs = clock.monotonicMs() + KILL_AFTER_MS
  for (let waitMs = POLL_MS_MIN; await isAlive(pid); waitMs = Math.min(2 * waitMs, POLL_MS_MAX)) {
    if (clock.monotonicMs() >= endMs) return void signal(pid, 'SIGKILL')
    await clock.sleep(waitMs)
  }
}

/** False if nobody was there to get it. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, name)
  } catch (error) {
    // EPERM: there, but somebody else's
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * True if a member of the group still runs. One that ended keeps its place until it is waited for, by an `init` that may
 * take its time or, in a container, never does it; so where there is /proc, that is where the answer comes from.
 */
async function isAlive(pid: number): Promise<boolean> {
  if (!signal(pid, 0)) return false
  const ids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  if (ids.length === 0) return true
  const stats = await Promise.all(ids.map((id) => readFile(`/proc/${id}/stat`, 'latin1').catch(() => '')))
  return stats.some((stat) => {
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(group) === pid && state !== 'Z' && state !== 'X'
  })
}
