// Waits until a daemon has finished its work.
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 50

/** Resolves once no message waits for its turn and no reply waits to be sent. */
export async function untilDone({ url, token }) {
  for (;;) {
    const response = await fetch(`${url}/api/status`, { headers: { authorization: `Bearer ${token}` } })
    const { messages_pending, replies_pending } = await response.json()
    if (messages_pending + replies_pending === 0) return
    await sleep(POLL_MS)
  }
}
