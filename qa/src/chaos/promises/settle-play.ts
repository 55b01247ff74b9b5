/** Waits until a daemon has finished the work of a play, for as long as anything moves. */
import { ask, pause } from '../request.ts'

export interface PlaySettling {
  /** The address of the daemon. */
  readonly url: string
  /** What people and programs still wait for, in words, or undefined. */
  left(): string | undefined
  /** A count that rises whenever a fake gets a request that is work. */
  moved(): number
  /** The longest time without any movement, in milliseconds. Default: a minute. */
  readonly stillMsMax?: number
  readonly signal: AbortSignal
}

const STILL_MS_MAX = 60_000
const POLL_MS = 100
/** The counts must be zero this often in a row: work that moves between two queues may be counted in neither. */
const POLLS = 5
const COUNTS = ['turns_running', 'turns_queued', 'messages_pending', 'replies_pending']

/** Resolves to undefined once all work has ended. Resolves to the work that is left when nothing has moved for too long, or when `signal` aborts. */
export async function settlePlay({ url, left, moved, stillMsMax = STILL_MS_MAX, signal }: PlaySettling): Promise<string | undefined> {
  let due: string | undefined
  let [seen, movedMs, quiet] = ['', performance.now(), 0]
  for (; performance.now() - movedMs < stillMsMax && !signal.aborted; await pause(POLL_MS, signal)) {
    const { body = {} } = (await ask(url, { path: '/api/status', signal })) ?? {}
    const busy = COUNTS.filter((name) => body[name] !== 0).map((name) => `${name} is ${body[name]}`)
    due = left() ?? (busy.length > 0 ? busy.join(', ') : undefined)
    quiet = due === undefined ? quiet + 1 : 0
    if (quiet === POLLS) return undefined
    const now = `${moved()} ${due} ${busy.join()}`
    if (now !== seen) movedMs = performance.now()
    seen = now
  }
  return due ?? 'work that came again and again'
}
