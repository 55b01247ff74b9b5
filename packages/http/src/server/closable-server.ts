/** An HTTP server of Node with the limits of its connections, which ends within a given time. */
import { createServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import { answerClientError } from './client-error.ts'

/** Times in milliseconds. A member whose name `http.createServer` also has means the same as there. */
export interface Timeouts {
  readonly headersTimeout?: number
  readonly requestTimeout?: number
  readonly keepAliveTimeout?: number
  readonly connectionsCheckingInterval?: number
  /** A peer that reads nothing of an answer for this time loses its connection. */
  readonly unreadTimeout?: number
}

const IDLE_SWEEP_MS = 50

/** A client that is slow to send its request loses its connection. */
const SERVER_OPTIONS: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: 30_000,
  maxHeaderSize: 16_384,
  shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
}

const UNREAD_MS = 60_000

export interface ClosableServer {
  readonly server: Server
  /** Accepts no more connections, closes idle ones, lets running requests finish for at most `graceMs`, then destroys the others. */
  close(graceMs: number): Promise<void>
}

export function createClosableServer({ unreadTimeout = UNREAD_MS, ...timeouts }: Timeouts = {}): ClosableServer {
  const server = createServer({ ...SERVER_OPTIONS, ...timeouts }).on('clientError', answerClientError)
  endUnread(server, unreadTimeout)
  const sockets = trackSockets(server)
  return { server, close: (graceMs) => closeServer(server, sockets, graceMs) }
}

/**
 * Closes a connection whose peer reads nothing of an answer for the time; data that leaves slowly is read. A peer that waits for an answer
 * keeps its connection.
 */
function endUnread(server: Server, timeoutMs: number): void {
  // A timer of the server would stay in the memory of each WebSocket.
  server.on('request', ({ socket }: IncomingMessage) => socket.setTimeout(timeoutMs))
  server.on('timeout', (socket: Socket) => {
    // Node leaves to this listener also the connections without a request, whose time-out is `keepAliveTimeout`.
    if (socket.timeout !== timeoutMs || socket.writableLength > 0) socket.destroy()
  })
}

/** Returns the set of open sockets, kept up to date. */
function trackSockets(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>()
  // One function for all sockets: the socket is its `this`.
  function onClose(this: Socket): void {
    open.delete(this)
  }
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.on('close', onClose)
  })
  return open
}

async function closeServer(server: Server, sockets: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS)
  const end = setTimeout(() => {
    for (const socket of sockets) socket.destroy()
  }, graceMs)
  await closed
  clearInterval(sweep)
  clearTimeout(end)
}
