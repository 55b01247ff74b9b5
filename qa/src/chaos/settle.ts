/** Waits until a daemon has done all it was given. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Traffic } from './traffic.ts'
import type { World } from './world.ts'

const LOOK_MS = 100
/** Between two of its queues a reply may be on neither. */
const LOOKS = 3

/** False if something is still to be done after `ms`. */
export async function settle(
  url: string,
  { recorder }: Pick<World, 'recorder'>,
  traffic: Pick<Traffic, 'waiting'>,
  ms: number,
): Promise<boolean> {
  const endMs = performance.now() + ms
  const isQuiet = async (): Promise<boolean> => {
    if (traffic.waiting() > 0) return false
    // A mail is on the daemon's books only once it has been fetched.
    for (const { mark, kind } of recorder.messages.values()) if (kind === 'mailpush' && !recorder.isAsked(mark)) return false
    return (await load(url)) === 0
  }
  for (let quiet = 0; performance.now() < endMs; ) {
    quiet = (await isQuiet()) ? quiet + 1 : 0
    if (quiet === LOOKS) return true
    await sleep(LOOK_MS)
  }
  return false
}

/** Turns, messages and replies that wait or are worked on. */
async function load(url: string): Promise<number> {
  const answer = (await (await fetch(`${url}/api/status`)).json()) as Record<string, number>
  const counts = ['turns_running', 'turns_queued', 'messages_pending', 'replies_pending'].map((name) => answer[name])
  return counts.reduce((sum: number, count) => sum + (count ?? Number.NaN), 0)
}
