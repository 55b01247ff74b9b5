/** A subscriber of a cluster's events that connects to any node, and goes on after the last event it got. */
import { pause } from '../chaos/request.ts'

/** Connections end now and then, so that the next one goes to another node. */
const CONNECTED_MS_MAX = 5_000
const PAUSE_MS = 100

/** Adds the id of each event that arrives. Resolves once `signal` aborts. */
export async function followNodes(url: () => string | undefined, ids: string[], signal: AbortSignal, token: string): Promise<void> {
  let last: string | undefined
  const connect = async (to: string): Promise<void> => {
    const leaving = AbortSignal.any([signal, AbortSignal.timeout(CONNECTED_MS_MAX)])
    const response = await fetch(`${to}/api/events`, {
      signal: leaving,
      headers: { authorization: `Bearer ${token}`, ...(last !== undefined && { 'last-event-id': last }) },
    })
    let text = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + chunk).split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const [, id] = /^id: ?(.*)$/m.exec(block) ?? []
        // Like a browser, it goes on after the last frame with an id; a frame that reports a gap is not an event.
        if (id !== undefined) last = id
        if (id !== undefined && /^data:/m.test(block) && !/"type":"gap"/.test(block)) ids.push(id)
      }
    }
  }
  while (!signal.aborted) {
    const to = url()
    if (to !== undefined) await connect(to).catch(() => undefined)
    await pause(PAUSE_MS, signal)
  }
}
