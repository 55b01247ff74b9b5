/** The HTTP servers of ports, of the control socket and of an embedding program: their sockets, their limits, and how they end. Loads the application with the first request that needs it. */
import { createServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { AppError } from '@sluice/sdk'
import { ApplicationLoader } from './application-loader.ts'
import { answerClientError } from './client-error.ts'
import { bindControlSocket } from './control-socket.ts'
import { Mounted } from './host-requests.ts'
import type { ServerParts } from './server.ts'

export interface HttpOptions extends Omit<ServerParts, 'url'> {
  /** Requests wait until it resolves. */
  readonly ready?: Promise<unknown>
  /** Overrides the default time-outs. */
  readonly timeouts?: Timeouts
}

/** A host and a port, of which 0 chooses a free one, or the descriptor of a listening socket, which a service manager may pass. */
export type Address = { readonly host: string; readonly port: number } | { readonly fd: number }

export interface ListenOptions extends HttpOptions {
  readonly host: string
  /** 0 chooses a free port. */
  readonly port: number
  /** The descriptor of a listening socket, which replaces `host` and `port`. A service manager may pass one. */
  readonly socket?: number
  /** Serves the control socket too. The caller holds the lock of the data directory. */
  readonly control?: ControlOptions
}

export interface ControlOptions {
  readonly dataDir: string
  /** The operator that every peer of the control socket is: `cli:<user>`. */
  readonly operator: string
}

/** Times in milliseconds. The members of the same name as those of `http.createServer` mean the same. */
export interface Timeouts {
  readonly headersTimeout?: number
  readonly requestTimeout?: number
  readonly keepAliveTimeout?: number
  readonly connectionsCheckingInterval?: number
  /** A peer that reads nothing of an answer for this time loses its connection. */
  readonly unreadTimeout?: number
}

export interface Bound {
  /** `http://host:port`. */
  readonly url: string
  /** The host that was asked for; with a given socket, its address. */
  readonly host: string
  readonly port: number
}

export interface Listening extends Bound, Pick<HttpSide, 'close' | 'endStreams'> {}

const BACKLOG = 1024
const IDLE_SWEEP_MS = 50
/** The time that requests over the control socket have to end, after those over the port. */
const CONTROL_GRACE_MS = 1000
/** Without any request the application is loaded after this time, so that the first request does not wait for it. */
const LOAD_AFTER_MS = 250

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

/** Resolves once connections are accepted. Rejects with `conflict` if the port is taken. */
export async function listen({ host, port, socket, control, ...options }: ListenOptions): Promise<Listening> {
  const side = new HttpSide(options)
  const bound = await side.listen(socket === undefined ? { host, port } : { fd: socket })
  if (control) await side.openControlSocket(control)
  return { ...bound, close: side.close, endStreams: side.endStreams }
}

/** Everything that serves the API of one daemon. */
export class HttpSide {
  /** Serves what a server of the embedding program passes on. */
  readonly mounted: Mounted
  readonly #options: HttpOptions
  readonly #loader: ApplicationLoader
  readonly #servers: ClosableServer[] = []
  readonly #bound: Bound[] = []
  #control: ClosableServer | undefined
  #closing: Promise<void> | undefined

  constructor(options: HttpOptions) {
    const { ready, timeouts, ...parts } = options
    this.#options = options
    this.#loader = new ApplicationLoader({ ...parts, url: () => this.#bound[0]?.url ?? null }, ready)
    this.mounted = new Mounted(this.#loader)
  }

  /**
   * Resolves once connections are accepted. Rejects with `conflict` if the port is taken, with `unavailable` after `close`, and with
   * what `admit` throws, which is called with the bound address.
   */
  async listen(address: Address, admit?: (bound: Bound) => void): Promise<Bound> {
    if (this.#closing) throw new AppError('unavailable', 'The daemon has stopped')
    const made = this.#newServer()
    const { server } = made
    const unsubscribe = this.#limitConnections(server)
    try {
      await bind(server, address)
      const bound = boundTo(server, address)
      admit?.(bound)
      server.on('close', unsubscribe)
      server.on('error', (error) => this.#options.runtime.log.error('HTTP server failed', { error }))
      this.#servers.push(made)
      this.#bound.push(bound)
      this.#loadSoon()
      return bound
    } catch (error) {
      unsubscribe()
      server.close()
      throw error
    }
  }

  /** Accepts connections of commands of this machine. Logs the reason where the system allows no socket. */
  async openControlSocket({ dataDir, operator }: ControlOptions): Promise<void> {
    this.#control = this.#newServer(operator)
    await bindControlSocket(this.#control.server, dataDir, this.#options.runtime.log)
    this.#loadSoon()
  }

  /**
   * Accepts no more connections, closes idle ones, lets running requests finish for at most `graceMs`, then destroys the
   * others. The control socket closes last. Idempotent.
   */
  readonly close = (graceMs: number): Promise<void> => {
    this.#closing ??= this.#close(graceMs)
    return this.#closing
  }

  /** Closes every stream with its reason, and admits no more. Streams do not end by themselves. */
  readonly endStreams = async (reason: string): Promise<void> => (await this.#loader.load()).endStreams(reason)

  async #close(graceMs: number): Promise<void> {
    await Promise.all([this.mounted.close(graceMs), ...this.#servers.map((server) => closeServer(server, graceMs))])
    if (this.#control) await closeServer(this.#control, Math.min(graceMs, CONTROL_GRACE_MS))
  }

  /** Returns an unsubscribe function. */
  #limitConnections(server: Server): () => void {
    const { runtime } = this.#options
    server.maxConnections = runtime.snapshot().gateway.max_connections
    return runtime.onSnapshot(({ gateway }) => {
      server.maxConnections = gateway.max_connections
    })
  }

  #newServer(operator?: string): ClosableServer {
    const { unreadTimeout = UNREAD_MS, ...timeouts } = this.#options.timeouts ?? {}
    const server = createServer({ ...SERVER_OPTIONS, ...timeouts }).on('clientError', answerClientError)
    endUnread(server, unreadTimeout)
    this.#loader.serve(server, operator)
    return { server, sockets: trackSockets(server) }
  }

  #loadSoon(): void {
    void this.#options.runtime.clock.sleep(LOAD_AFTER_MS).then(() => this.#loader.load())
  }
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

interface ClosableServer {
  readonly server: Server
  /** The open sockets, kept up to date. */
  readonly sockets: ReadonlySet<Socket>
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

async function closeServer({ server, sockets }: ClosableServer, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS)
  const end = setTimeout(() => {
    for (const socket of sockets) socket.destroy()
  }, graceMs)
  await closed
  clearInterval(sweep)
  clearTimeout(end)
}

const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host)

function boundTo(server: Server, address: Address): Bound {
  const { address: actual, port } = server.address() as AddressInfo
  const host = 'host' in address ? address.host : actual
  return { url: `http://${urlHost(host)}:${port}`, host, port }
}

const bind = (server: Server, address: Address): Promise<void> =>
  new Promise((resolve, reject) => {
    const name = 'fd' in address ? `the socket of descriptor ${address.fd}` : `${urlHost(address.host)}:${address.port}`
    const fail = (cause: NodeJS.ErrnoException): void => reject(bindError(cause, name))
    server.once('error', fail)
    server.listen({ ...address, backlog: BACKLOG }, () => {
      server.off('error', fail)
      resolve()
    })
  })

function bindError(cause: NodeJS.ErrnoException, address: string): AppError {
  if (cause.code === 'EADDRINUSE') {
    return new AppError(
      'conflict',
      `${address} is taken: stop the program that listens there, or choose another port with --port or [gateway] port`,
      { cause },
    )
  }
  return new AppError('unavailable', `cannot listen on ${address}: ${cause.message}`, { cause })
}
