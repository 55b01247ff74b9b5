/**
 * An HTTP server on loopback that imitates a platform's API. The fake of each platform checks requests as the platform
 * does, and a test injects network faults. Both tests and operators start it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { headersIn, jsonIn, listenOnLoopback, readWhole } from './loopback-server.ts'

/** A request that arrived at the fake. */
export interface ProviderRequest {
  readonly method: string
  /** The path without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly body: Buffer
  /** The body parsed as JSON; `undefined` if it is not JSON. */
  readonly json: unknown
}

/** The answer of a fake to a request. */
export interface ProviderReply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** A string or bytes are sent unchanged; anything else is sent as JSON. */
  readonly body?: unknown
  /** Writes the body piece by piece, such as events, after the headers were sent. Takes the place of `body`. */
  stream?(outgoing: ServerResponse): void
}

/**
 * A network fault. `lost`: the request takes effect but its answer never arrives. `reset`: the connection breaks before the
 * request takes effect. `hang`: no answer until the connection ends. `slow`: `ms` milliseconds pass between pieces of the
 * answer. `garbage`: the request takes effect but the answer is not JSON. `cut`: the request takes effect but the answer
 * breaks off in the middle. `status`: the request has no effect and gets the given answer.
 */
export type ProviderFault =
  | { readonly fault: 'lost' | 'reset' | 'hang' | 'garbage' | 'cut' }
  | { readonly fault: 'slow'; readonly ms: number }
  | { readonly fault: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }

/** A running fake: its requests and the faults to inject. */
export interface FakeProvider {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string
  /** The last `REQUESTS_MAX` requests, including the ones that met a fault. */
  readonly requests: readonly ProviderRequest[]
  /** Queues a fault for the next `times` requests (default 1) that `matches` accepts (default: every request). */
  fail(fault: ProviderFault, options?: { readonly times?: number; matches?(request: ProviderRequest): boolean }): void
  /** Breaks all connections, WebSockets included. `isDown` keeps the platform from accepting others until the next call. */
  cut(options?: { readonly isDown?: boolean }): void
  close(): Promise<void>
}

/** How the fake listens. */
export interface FakeProviderOptions {
  /** Default: any free port. */
  readonly port?: number
  /** Handles WebSocket upgrades. The handler must end its connections before `close`. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

const REQUESTS_MAX = 100_000
/**
 * Longer than clients keep a connection that is idle. If the server closed one first, it could do so while a request is on its way, and the
 * client would not know whether the request took effect, although no fault was injected.
 */
const KEEP_ALIVE_MS = 60_000
const BODY_BYTES_MAX = 64 * 1024 * 1024
const DRIP_BYTES = 8

/** `answer` checks a request and applies it as the platform does. An error it throws is sent as a 500 with the error's text. */
export async function startFakeProvider(
  answer: (request: ProviderRequest) => ProviderReply | Promise<ProviderReply>,
  { port = 0, upgrade }: FakeProviderOptions = {},
): Promise<FakeProvider> {
  const requests: ProviderRequest[] = []
  const faults: { fault: ProviderFault; left: number; matches: (request: ProviderRequest) => boolean }[] = []

  const nextFault = (request: ProviderRequest): ProviderFault | undefined => {
    const found = faults.find(({ matches }) => matches(request))
    if (found && --found.left === 0) faults.splice(faults.indexOf(found), 1)
    return found?.fault
  }

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const request = await toRequest(incoming)
    requests.push(request)
    if (requests.length > REQUESTS_MAX) requests.shift()
    const fault = nextFault(request)
    if (fault?.fault === 'hang') return
    if (fault?.fault === 'reset') return void outgoing.socket?.resetAndDestroy()
    if (fault?.fault === 'status') return sendReply(outgoing, fault)
    const reply = await answer(request)
    if (fault?.fault === 'lost') return void outgoing.socket?.resetAndDestroy()
    if (fault?.fault === 'garbage') return sendReply(outgoing, { ...reply, body: '<html>Bad gateway</html>' })
    if (fault?.fault === 'cut') return cutOff(outgoing, reply)
    if (fault?.fault === 'slow') return drip(outgoing, reply, fault.ms)
    sendReply(outgoing, reply)
  }

  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch((error: unknown) => {
      if (!outgoing.headersSent) sendReply(outgoing, { status: 500, body: { fake: String(error) } })
      else outgoing.destroy()
    })
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  if (upgrade) server.on('upgrade', upgrade)
  const sockets = new Set<Socket>()
  let isUnreachable = false
  server.on('connection', (socket) => {
    if (isUnreachable) return void socket.resetAndDestroy()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return {
    ...(await listenOnLoopback(server, port)),
    requests,
    fail: (fault, { times = 1, matches = () => true } = {}) => void faults.push({ fault, left: times, matches }),
    cut({ isDown = false } = {}) {
      isUnreachable = isDown
      for (const socket of sockets) socket.resetAndDestroy()
    },
  }
}

async function toRequest(incoming: IncomingMessage): Promise<ProviderRequest> {
  const url = new URL(incoming.url ?? '/', 'http://fake')
  const body = await readWhole(incoming, BODY_BYTES_MAX)
  return {
    method: incoming.method ?? '',
    path: url.pathname,
    query: url.searchParams,
    headers: headersIn(incoming),
    body,
    json: jsonIn(body),
  }
}

const bytesOf = ({ body }: ProviderReply): Buffer => {
  if (body === undefined) return Buffer.alloc(0)
  if (body instanceof Uint8Array) return Buffer.from(body)
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

const headersOf = ({ headers }: ProviderReply, bytes: Buffer) => ({
  'content-type': 'application/json',
  'content-length': bytes.length,
  ...headers,
})

function sendReply(outgoing: ServerResponse, reply: ProviderReply): void {
  if (reply.stream) {
    outgoing.writeHead(reply.status, reply.headers).flushHeaders()
    reply.stream(outgoing)
    return
  }
  const bytes = bytesOf(reply)
  outgoing.writeHead(reply.status, headersOf(reply, bytes)).end(bytes)
}

function cutOff(outgoing: ServerResponse, reply: ProviderReply): void {
  const bytes = bytesOf(reply)
  outgoing.writeHead(reply.status, headersOf(reply, bytes))
  outgoing.write(bytes.subarray(0, bytes.length >> 1), () => outgoing.destroy())
}

async function drip(outgoing: ServerResponse, reply: ProviderReply, ms: number): Promise<void> {
  const bytes = bytesOf(reply)
  outgoing.writeHead(reply.status, headersOf(reply, bytes))
  for (let at = 0; at < bytes.length && !outgoing.destroyed; at += DRIP_BYTES) {
    outgoing.write(bytes.subarray(at, at + DRIP_BYTES))
    await sleep(ms)
  }
  outgoing.end()
}

/**
 * Makes the platform leave one request without an answer: the next one, or the next that `isMeant` accepts. The returned
 * signal aborts as soon as that request arrives, so a test needs no timer.
 */
export function abortedOnArrival(
  fake: Pick<FakeProvider, 'fail'>,
  isMeant: (request: ProviderRequest) => boolean = () => true,
): AbortSignal {
  const abort = new AbortController()
  const matches = (request: ProviderRequest): boolean => {
    if (isMeant(request)) abort.abort()
    return abort.signal.aborted
  }
  fake.fail({ fault: 'hang' }, { matches })
  return abort.signal
}
