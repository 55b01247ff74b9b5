/** One client takes all that it can get from a built daemon. An operator hardly notices, and the memory stays bounded. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type ClientRequest, request } from 'node:http'
import { connect } from 'node:net'
import { startModelServer } from '@sluice/testkit/model-server'
import { expect, test } from 'vitest'
import { post, type RunningDaemon, scratch, startDaemon, token } from '../daemons/bundle.ts'

const MB = 1024 * 1024
/** The operator's turn may take this many times as long, and the daemon this many times the memory. */
const SLOWER_MAX = 3
const LARGER_MAX = 2.5
const TURNS_MEASURED = 15

const DOWNLOADS = 200
const FILE_BYTES = 10 * MB - 8
const LARGE_TURNS = 500
const SLOW_TURNS = 40
const STREAMS = 60
const FILES = 60

/** The number of requests that are sent at the same time. */
const AT_ONCE = 20

const STATUS = '/proc/self/status'

/** Returns the resident memory of a process in MB, now (`VmRSS`) or at most (`VmHWM`). */
const residentMb = (pid: number, field: 'VmRSS' | 'VmHWM'): number =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

/** Makes `VmHWM` the largest memory from now on. */
const forgetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, '5')

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** The median time of an operator's turn. */
async function turnMs(url: string, bearer: string): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < TURNS_MEASURED; n++) {
    const startMs = performance.now()
    const { status } = await post(`${url}/webhook`, { message: 'hello' }, { authorization: `Bearer ${bearer}` })
    expect(status).toBe(200)
    times.push(performance.now() - startMs)
  }
  return median(times)
}

interface Sent {
  readonly body?: string
  readonly more?: object
}

const fileOf = (bytes: number) => ({ name: 'a.bin', data: randomBytes(bytes).toString('base64') })

/** Runs an action many times, some of them at once. */
async function inBatches(times: number, action: (index: number) => Promise<void>): Promise<void> {
  for (let done = 0; done < times; done += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, times - done) }, (_, index) => action(done + index)))
}

/** The attacks of one client. All requests stay open until `close`. */
function attackOf({ url }: RunningDaemon, bearer: string) {
  const open: { destroy(): void }[] = []
  const statuses = new Map<string, Map<number, number>>()
  const count = (what: string, status: number): void => {
    const counts = statuses.get(what) ?? new Map<number, number>()
    statuses.set(what, counts.set(status, (counts.get(status) ?? 0) + 1))
  }
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
  /** Resolves once the request is answered or has failed; its answer stays unread. */
  const send = (what: string, path: string, { body, more = {} }: Sent = {}): Promise<void> =>
    new Promise((resolve) => {
      const method = body === undefined ? 'GET' : 'POST'
      const options = { method, agent: false, headers: { ...headers, ...more } }
      const sent: ClientRequest = request(`${url}${path}`, options, (response) => {
        count(what, response.statusCode ?? 0)
        response.pause()
        response.on('error', () => undefined)
        resolve()
      })
      sent.on('error', () => resolve())
      sent.end(body)
      open.push(sent)
    })
  return {
    statuses,
    /** Resolves to the line by which a message names the file. */
    async attachment(): Promise<string> {
      return String((await post(`${url}/api/attachments`, fileOf(FILE_BYTES), headers)).body.text)
    },
    async attachments(): Promise<void> {
      for (let n = 0; n < FILES; n++) {
        const body = JSON.stringify(fileOf(FILE_BYTES))
        await send('attachments', '/api/attachments', { body })
      }
    },
    downloads(path: string): Promise<void> {
      const { port, hostname } = new URL(url)
      return inBatches(DOWNLOADS, async () => {
        const socket = connect(Number(port), hostname)
        open.push(socket)
        socket.on('error', () => undefined)
        socket.pause()
        socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${bearer}\r\n\r\n`)
        await once(socket, 'connect')
      })
    },
    largeTurns(): Promise<void> {
      const body = JSON.stringify({ message: `SLOW ${'x'.repeat(1_040_000)}` })
      return inBatches(LARGE_TURNS, () => send('large turns', '/api/turns', { body, more: { 'content-length': body.length } }))
    },
    slowTurns: () =>
      Promise.all(
        Array.from({ length: SLOW_TURNS }, () =>
          send('slow turns', '/webhook', { body: JSON.stringify({ message: 'SLOW' }), more: { prefer: 'respond-async' } }),
        ),
      ),
    streams: () => Promise.all(Array.from({ length: STREAMS }, () => send('streams', '/api/events'))),
    close(): void {
      for (const one of open) one.destroy()
    },
  }
}

const ORDERS = existsSync(STATUS) ? (['first', 'last'] as const) : []

test.each(ORDERS)('a client that takes all it can get, files %s, neither delays an operator nor fills the memory', async (filesAre) => {
  const never = new Promise<never>(() => {})
  const model = await startModelServer({ answer: ({ lastUserText }) => (lastUserText.includes('SLOW') ? never : { text: 'ok' }) })
  const { dir, dispose } = scratch(`
[provider]
kind = "openai"
base_url = "${model.url}/v1"
model = "small"
api_key = "${model.apiKey}"
[gateway]
max_subscribers = 40
webhook_rate_limit_per_minute = 0
`)
  const daemon = await startDaemon('full', dir)
  let attack: ReturnType<typeof attackOf> | undefined
  try {
    const operator = await token('full', dir, 'owner')
    const client = await token('full', dir, 'guest', 'client')
    attack = attackOf(daemon, client)
    const aloneMs = await turnMs(daemon.url, operator)
    const idleMb = residentMb(daemon.pid, 'VmRSS')
    forgetPeak(daemon.pid)
    const line = await attack.attachment()
    const { status } = await post(`${daemon.url}/webhook`, { message: line }, { authorization: `Bearer ${client}`, 'x-session-id': 's' })
    expect(status).toBe(200)
    if (filesAre === 'first') await attack.attachments()
    await attack.largeTurns()
    await attack.slowTurns()
    await attack.streams()
    const path = encodeURIComponent(/attachments\/\S+/.exec(line)?.[0] ?? '')
    await attack.downloads(`/api/sessions/s/file?path=${path}`)
    if (filesAre === 'last') await attack.attachments()
    const attackedMs = await turnMs(daemon.url, operator)
    const peakMb = residentMb(daemon.pid, 'VmHWM')
    const streams = await fetch(`${daemon.url}/api/events`, { headers: { authorization: `Bearer ${operator}` } })
    await streams.body?.cancel()
    const figures = {
      aloneMs,
      attackedMs,
      slower: attackedMs / aloneMs,
      idleMb,
      peakMb,
      larger: peakMb / idleMb,
      statuses: Object.fromEntries([...attack.statuses].map(([what, counts]) => [what, Object.fromEntries(counts)])),
    }
    const isHeld = figures.slower <= SLOWER_MAX && figures.larger <= LARGER_MAX
    expect({ streams: streams.status, isHeld }, JSON.stringify(figures)).toEqual({ streams: 200, isHeld: true })
  } finally {
    attack?.close()
    daemon.kill('SIGKILL')
    await daemon.exited
    await model.close()
    dispose()
  }
})
