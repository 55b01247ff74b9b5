/** Waits until a daemon has nothing to do. */
import { ask, pause } from './request.ts'

const POLL_MS = 100
/** The counts must be zero this often in a row: a reply that moves between two queues may be counted in neither. */
const POLLS = 3
const COUNTS = ['turns_running', 'turns_queued', 'messages_pending', 'replies_pending']

/** Resolves to false if something still waits or runs after `ms`. */
export async function quiet(url: string, ms: number, signal: AbortSignal): Promise<boolean> {
  const endMs = performance.now() + ms
  for (let polls = 0; performance.now() < endMs && !signal.aborted; await pause(POLL_MS, signal)) {
    const { body = {} } = (await ask(url, { path: '/api/status', signal })) ?? {}
    polls = COUNTS.every((name) => body[name] === 0) ? polls + 1 : 0
    if (polls === POLLS) return true
  }
  return false
}
