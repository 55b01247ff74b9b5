/** Waits until the daemon has no active run, no open approval and nothing to send. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '../request.ts'

const POLL_MS = 100
/** All must be empty this often in a row: work that moves between two queues may be counted in neither. */
const POLLS = 5
const COUNTS = ['turns_running', 'turns_queued', 'messages_pending', 'replies_pending', 'commits_queued']

/** Resolves to false if work is left after `ms`. */
export async function settleSops(url: string, signal: AbortSignal, ms: number): Promise<boolean> {
  const endMs = performance.now() + ms
  const rows = async (path: string, name: string): Promise<readonly unknown[] | undefined> => {
    const answered = await ask(url, { path, signal })
    return answered?.status === 200 ? (answered.body[name] as readonly unknown[]) : undefined
  }
  const isQuiet = async (): Promise<boolean> => {
    if ((await rows('/api/sops/runs?active=true&limit=1', 'runs'))?.length !== 0) return false
    if ((await rows('/api/approvals?state=pending&limit=1', 'approvals'))?.length !== 0) return false
    // The daemon notices the decision of a command a little later.
    const latest = (await rows('/api/approvals?limit=200', 'approvals')) as readonly { readonly settled_at: string | null }[] | undefined
    if (latest?.some((approval) => approval.settled_at === null) !== false) return false
    const status = await ask(url, { path: '/api/status', signal })
    return COUNTS.every((name) => status?.body[name] === 0)
  }
  for (let quiet = 0; performance.now() < endMs && !signal.aborted; ) {
    quiet = (await isQuiet()) ? quiet + 1 : 0
    if (quiet === POLLS) return true
    await sleep(POLL_MS)
  }
  return false
}
