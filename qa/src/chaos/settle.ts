/** Waits until the daemon has finished all work. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Message } from './history.ts'
import type { Recorder } from './recorder.ts'
import type { Traffic } from './traffic.ts'

const POLL_MS = 100
/** The counts must be zero this often in a row: a reply that moves between two queues may be counted in neither. */
const POLLS = 3
const PAGE = 500

/** Resolves to undefined once all work has ended, or to the work that is left after `ms`. */
export async function settle(
  url: string,
  recorder: Recorder,
  traffic: Pick<Traffic, 'waiting' | 'retry'>,
  ms: number,
): Promise<string | undefined> {
  const endMs = performance.now() + ms
  let left: string | undefined
  for (let quiet = 0; performance.now() < endMs; ) {
    // An answer that came too late for its request, as on a slow machine, leaves the request without an acknowledgement.
    if (traffic.waiting > 0) await traffic.retry(url, AbortSignal.timeout(Math.ceil(Math.max(1, endMs - performance.now()))))
    left = await workLeft(url, recorder, traffic)
    quiet = left === undefined ? quiet + 1 : 0
    if (quiet === POLLS) return undefined
    await sleep(POLL_MS)
  }
  return left ?? 'work that came again and again'
}

async function workLeft(url: string, { messages, isAsked }: Recorder, traffic: Pick<Traffic, 'waiting'>): Promise<string | undefined> {
  if (traffic.waiting > 0) return `${traffic.waiting} requests that were not acknowledged`
  // The daemon does not count a mail before it has fetched it.
  const unasked = [...messages.values()].filter(({ mark, isPulled }) => isPulled && !isAsked(mark))
  for (const message of unasked) if (!message.answers) return `${message.mark} on ${message.kind}, which did not reach the model`
  // An answer that decides its question never reaches the model.
  for (const answer of unasked)
    if (!(await hasArrived(url, answer))) return `the answer ${answer.mark} on ${answer.kind}, which did not arrive`
  const loads = await load(url)
  return loads === 0 ? undefined : `${loads} turns, messages and replies`
}

async function hasArrived(url: string, { kind, id }: Message): Promise<boolean> {
  const answer = await fetch(`${url}/api/deliveries/inbox?channel=${kind}&limit=${PAGE}`)
  const { messages } = (await answer.json()) as { readonly messages: readonly { readonly message_id: string }[] }
  return messages.some(({ message_id }) => message_id === id)
}

/** The number of turns, messages and replies that wait or run. */
async function load(url: string): Promise<number> {
  const answer = (await (await fetch(`${url}/api/status`)).json()) as Record<string, number>
  const counts = ['turns_running', 'turns_queued', 'messages_pending', 'replies_pending'].map((name) => answer[name])
  return counts.reduce((sum: number, count) => sum + (count ?? Number.NaN), 0)
}
