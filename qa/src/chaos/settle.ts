/** Waits until the daemon has finished all work. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Traffic } from './traffic.ts'
import type { World } from './world.ts'

const POLL_MS = 100
/** The counts must be zero this often in a row: a reply that moves between two queues may be counted in neither. */
const POLLS = 3

/** Resolves to false if work is left after `ms`. */
export async function settle(url: string, { recorder }: World, traffic: Traffic, ms: number): Promise<boolean> {
  const endMs = performance.now() + ms
  const isQuiet = async (): Promise<boolean> => {
    if (traffic.waiting > 0) return false
    // The daemon does not count a mail before it has fetched it.
    for (const { mark, isPulled } of recorder.messages.values()) if (isPulled && !recorder.isAsked(mark)) return false
    return (await load(url)) === 0
  }
  for (let quiet = 0; performance.now() < endMs; ) {
    quiet = (await isQuiet()) ? quiet + 1 : 0
    if (quiet === POLLS) return true
    await sleep(POLL_MS)
  }
  return false
}

/** The number of turns, messages and replies that wait or run. */
async function load(url: string): Promise<number> {
  const answer = (await (await fetch(`${url}/api/status`)).json()) as Record<string, number>
  const counts = ['turns_running', 'turns_queued', 'messages_pending', 'replies_pending'].map((name) => answer[name])
  return counts.reduce((sum: number, count) => sum + (count ?? Number.NaN), 0)
}
