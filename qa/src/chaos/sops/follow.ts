/** Simulates a subscriber of one life of the daemon that disconnects and reconnects with the id of the last event it got. */
import type { Random } from '@sluice/testkit/random'
import { pause } from '../request.ts'
import type { SopsRecorder } from './recorder.ts'

/** The duration of a connection, from its first answer on. */
const CONNECTED_MS = { min: 50, max: 400 }
const DISCONNECTED_MS_MAX = 60

/** Resolves once `signal` aborts. */
export async function follow(url: string, recorder: SopsRecorder, random: Random, signal: AbortSignal): Promise<void> {
  let lastId: string | undefined
  let fromMs: number | undefined
  let untilMs = 0

  const record = (block: string): void => {
    const lines = block.split('\n')
    const id = lines.find((line) => line.startsWith('id:'))
    if (id !== undefined) lastId = id.slice('id:'.length).trim()
    if (lastId !== undefined) fromMs ??= Date.now()
    const data = lines.find((line) => line.startsWith('data:'))
    const event = data === undefined ? {} : (JSON.parse(data.slice('data:'.length)) as Readonly<Record<string, string>>)
    if (event.timestamp !== undefined) untilMs = Date.parse(event.timestamp)
    if (event.type !== 'human_approval_resolved') return
    recorder.see({ type: 'emitted', run: event.run_id ?? '', step: event.step_id ?? '', state: event.state ?? '' })
  }
  const connect = async (): Promise<void> => {
    const leaving = new AbortController()
    const headers = lastId === undefined ? {} : { 'last-event-id': lastId }
    const response = await fetch(`${url}/api/events`, { signal: AbortSignal.any([signal, leaving.signal]), headers })
    const timer = setTimeout(() => leaving.abort(), random.within(CONNECTED_MS.min, CONNECTED_MS.max))
    try {
      let text = ''
      for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const blocks = (text + chunk).split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) record(block)
      }
    } finally {
      clearTimeout(timer)
    }
  }

  while (!signal.aborted) {
    await connect().catch(() => undefined)
    await pause(random.within(0, DISCONNECTED_MS_MAX), signal)
  }
  if (fromMs !== undefined) recorder.see({ type: 'followed', fromMs, untilMs })
}
