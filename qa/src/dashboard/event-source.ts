/**
 * Sends events to a page at a fixed rate, from a thread of its own: neither the log of a daemon nor other work of the test is the
 * limit then.
 */
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'

/** How often the events that are due are sent. */
const EVERY_MS = 10

const SOURCE = `
  const { parentPort, workerData: { ws, everyMs } } = require('node:worker_threads')
  const { WebSocketServer } = require(ws)
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  const TYPES = ['turn_started', 'tool_started', 'tool_completed', 'turn_completed', 'delivery']
  let number = 0
  const send = () => {
    const event = JSON.stringify({
      id: 'load-' + number, timestamp: new Date().toISOString(), type: TYPES[number % TYPES.length], turn_id: 'turn-' + number,
      session_id: 'session-' + number % 50, tool: 'file_read', direction: 'outbound', channel: 'webhook', number, state: 'sent',
    })
    number++
    for (const client of server.clients) client.send(event)
  }
  let timer
  parentPort.on('message', ({ perSecond, count }) => {
    clearInterval(timer)
    for (let sent = 0; sent < (count ?? 0); sent++) send()
    if (!perSecond) return parentPort.postMessage('stopped')
    const startedAt = performance.now()
    let sent = 0
    timer = setInterval(() => {
      for (const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond); sent < due; sent++) send()
    }, everyMs)
  })
  server.on('connection', () => parentPort.postMessage('connected'))
  server.on('listening', () => parentPort.postMessage(server.address().port))
`

export interface EventSource {
  readonly port: number
  /** Resolves once a page has connected. */
  readonly connected: Promise<unknown>
  /** Sends so many events a second until `stop`. */
  start(perSecond: number): void
  stop(): Promise<void>
  /** Sends so many events at once. */
  send(count: number): Promise<void>
  close(): Promise<unknown>
}

export async function startEventSource(): Promise<EventSource> {
  const ws = createRequire(import.meta.url).resolve('ws')
  const worker = new Worker(SOURCE, { eval: true, workerData: { ws, everyMs: EVERY_MS } })
  const [port] = (await once(worker, 'message')) as [number]
  const post = async (message: object) => {
    const answered = once(worker, 'message')
    worker.postMessage(message)
    await answered
  }
  return {
    port,
    connected: once(worker, 'message'),
    start: (perSecond) => worker.postMessage({ perSecond }),
    stop: () => post({}),
    send: (count) => post({ count }),
    close: () => worker.terminate(),
  }
}
