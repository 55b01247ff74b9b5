/** The HTTP servers of the port and of the control socket: their sockets, their limits, and how they end. Loads the application with the first request that needs it. */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError } from '@sluice/sdk'
import { answerClientError } from './client-error.ts'
import { bindControlSocket } from './control-socket.ts'
import { JSON_HEADERS } from './respond.ts'
import { healthBody, readiness } from './routes/health.ts'
import type { Application, ServerParts } from './server.ts'

export interface ListenOptions extends Omit<ServerParts, 'url'> {
  readonly host: string
  /** 0 chooses a free port. */
  readonly port: number
  /** The descriptor of a listening socket, which replaces `host` and `port`. A service manager may pass one. */
  readonly socket?: number
  /** Serves the control socket too. The caller holds the lock of the data directory. */
  readonly control?: ControlOptions
  /** Requests wait until it resolves. */
  readonly ready?: Promise<unknown>
  /** Overrides the default time-outs. */
  readonly timeouts?: Timeouts
}

export interface ControlOptions {
  readonly dataDir: string
  /** The operator that every peer of the control socket is: `cli:<user>`. */
  readonly operator: string
}

/** In milliseconds, as in `http.createServer`. */
export interface Timeouts {
  readonly headersTimeout?: number
  readonly requestTimeout?: number
  readonly keepAliveTimeout?: number
  readonly connectionsCheckingInterval?: number
}

export interface Listening {
  /** `http://host:port`. */
  readonly url: string
  /** The host that was asked for; with a given socket, its address. */
  readonly host: string
  readonly port: number
  /**
   * Accepts no more connections, closes idle ones, lets running requests finish for at most `graceMs`, then destroys the
   * others. The control socket closes last. Idempotent.
   */
  close(graceMs: number): Promise<void>
  /** Closes every stream with its reason, and admits no more. Streams do not end by themselves. */
  endStreams(reason: string): Promise<void>
}

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

/** Resolves once connections are accepted. Rejects with `conflict` if the port is taken. */
export async function listen({ host: wanted, port, socket, control, ready, timeouts, ...parts }: ListenOptions): Promise<Listening> {
  const { runtime } = parts
  const address = (): AddressInfo => server.address() as AddressInfo
  const host = (): string => (socket === undefined ? wanted : address().address)
  const url = (): string => `http://${urlHost(host())}:${address().port}`
  const loader = new ApplicationLoader({ ...parts, url }, ready)
  const newServer = (operator?: string): ClosableServer => {
    const made = createServer({ ...SERVER_OPTIONS, ...timeouts }).on('clientError', answerClientError)
    loader.serve(made, operator)
    return { server: made, sockets: trackSockets(made) }
  }
  const main = newServer()
  const { server } = main
  server.maxConnections = runtime.snapshot().gateway.max_connections
  const unsubscribe = runtime.onSnapshot(({ gateway }) => {
    server.maxConnections = gateway.max_connections
  })
  server.on('close', unsubscribe)
  await bind(server, socket === undefined ? { host: wanted, port } : { fd: socket })
  server.on('error', (error) => runtime.log.error('HTTP server failed', { error }))
  const controlServer = control && newServer(control.operator)
  if (controlServer) await bindControlSocket(controlServer.server, control.dataDir, runtime.log)
  void runtime.clock.sleep(LOAD_AFTER_MS).then(() => loader.load())
  const close = async (graceMs: number): Promise<void> => {
    await closeServer(main, graceMs)
    if (controlServer) await closeServer(controlServer, Math.min(graceMs, CONTROL_GRACE_MS))
  }

  let closing: Promise<void> | undefined
  return {
    url: url(),
    host: host(),
    port: address().port,
    close(graceMs) {
      closing ??= close(graceMs)
      return closing
    },
    endStreams: async (reason) => (await loader.load()).endStreams(reason),
  }
}

/** Answers `GET /health` and `GET /ready` at once; every other request loads the application and waits for it. */
class ApplicationLoader {
  readonly #parts: ServerParts
  readonly #ready: Promise<unknown> | undefined
  /** Attach the application to the servers that wait for it. */
  readonly #attach: ((application: Application) => void)[] = []
  #loading: Promise<Application> | undefined

  constructor(parts: ServerParts, ready: Promise<unknown> | undefined) {
    this.#parts = parts
    this.#ready = ready
  }

  /** Serves a server, whose peers are all `operator` if there is one. */
  serve(server: Server, operator: string | undefined): void {
    const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse & { req: IncomingMessage }): void => {
      const { runtime } = this.#parts
      if (isProbe('/health', incoming)) answerProbe(incoming, outgoing, { status: 200, body: healthBody(runtime) })
      else if (isProbe('/ready', incoming)) void readiness(runtime).then((ready) => answerProbe(incoming, outgoing, ready))
      else void this.load().then(() => server.emit('request', incoming, outgoing))
    }
    const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
      socket.on('error', () => socket.destroy())
      void this.load().then(() => server.emit('upgrade', request, socket, head))
    }
    server.on('request', onRequest).on('upgrade', onUpgrade)
    this.#attach.push((application) => {
      server.off('request', onRequest).off('upgrade', onUpgrade)
      server.on('request', application.serve(server, operator))
    })
  }

  /** Resolves once the application serves the requests of all servers. Loads it only once. */
  load(): Promise<Application> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  async #load(): Promise<Application> {
    const [{ createApplication }] = await Promise.all([import('./server.ts'), this.#ready])
    const application = createApplication(this.#parts)
    for (const attach of this.#attach) attach(application)
    return application
  }
}

/** A host as clients usually write it; the application judges every other. */
const HOST = /^[\w.-]+(?::\d+)?$|^\[[\da-fA-F:]+\](?::\d+)?$/

const isProbe = (path: string, { method, url, headers }: IncomingMessage): boolean =>
  url === path && (method === 'GET' || method === 'HEAD') && HOST.test(headers.host ?? '')

function answerProbe(
  { method }: IncomingMessage,
  outgoing: ServerResponse,
  { status, body }: { readonly status: number; readonly body: string },
): void {
  outgoing.writeHead(status, { ...JSON_HEADERS, 'content-length': Buffer.byteLength(body) })
  outgoing.end(method === 'HEAD' ? undefined : body)
}

interface ClosableServer {
  readonly server: Server
  /** The open sockets, kept up to date. */
  readonly sockets: ReadonlySet<Socket>
}

/** Returns the set of open sockets, kept up to date. */
function trackSockets(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
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

type Place = { readonly host: string; readonly port: number } | { readonly fd: number }

const bind = (server: Server, place: Place): Promise<void> =>
  new Promise((resolve, reject) => {
    const name = 'fd' in place ? `the socket of descriptor ${place.fd}` : `${urlHost(place.host)}:${place.port}`
    const fail = (cause: NodeJS.ErrnoException): void => reject(bindError(cause, name))
    server.once('error', fail)
    server.listen({ ...place, backlog: BACKLOG }, () => {
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
