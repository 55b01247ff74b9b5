/** Ends a process together with every process that it started and that stayed in its process group. */
import { readdir, readFile } from 'node:fs/promises'
import type { Clock } from '@sluice/sdk'

/** The time between SIGTERM and SIGKILL. */
const KILL_AFTER_MS = 2_000
/** Most groups end at once, so the first polls follow closely. */
const POLL_MS_MIN = 1
const POLL_MS_MAX = 25

/**
 * Sends SIGTERM to the group that `pid` leads and, if a member still runs two seconds later, SIGKILL. Resolves once the
 * group has ended or was sent SIGKILL; at once for a group that has ended already.
 */
export async function stopGroup(pid: number, clock: Clock): Promise<void> {
  if (!signal(pid, 'SIGTERM')) return
  const endMs = clock.monotonicMs() + KILL_AFTER_MS
  for (let waitMs = POLL_MS_MIN; await isAlive(pid); waitMs = Math.min(2 * waitMs, POLL_MS_MAX)) {
    if (clock.monotonicMs() >= endMs) return void signal(pid, 'SIGKILL')
    await clock.sleep(waitMs)
  }
}

/** False if the group has no members. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, name)
  } catch (error) {
    // EPERM: the group exists, but belongs to another user.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * True if a member of the group still runs. A member that has ended stays in the group until its parent waits for it, which
 * `init` does late or, in some containers, never. So where there is /proc, the state that it shows decides.
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
