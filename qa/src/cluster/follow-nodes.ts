/** A subscriber of a cluster's events that connects to any node, and goes on after the last event it got. */
import { pause } from '../chaos/request.ts'

/** Connections end now and then, so that the next one goes to another node. */
const CONNECTED_MS_MAX = 5_000
const PAUSE_MS = 100

/** Adds the id of each event that arrives. Resolves once `signal` aborts. */
export async function followNodes(url: () => string | undefined, ids: string[], signal: AbortSignal): Promise<void> {
  const connect = async (to: string): Promise<void> => {
    const last = ids.at(-1)
    const leaving = AbortSignal.any([signal, AbortSignal.timeout(CONNECTED_MS_MAX)])
    const response = await fetch(`${to}/api/events`, { signal: leaving, headers: last === undefined ? {} : { 'last-event-id': last } })
    let text = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + chunk).split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        // A frame that tells of a gap repeats an id.
        const [, id] = /^id: ?(.*)$/m.exec(block) ?? []
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
