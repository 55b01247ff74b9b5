/**
 * The HTTP servers of ports, of the control socket and of an embedding program: where they listen, and how they end. Loads the application
 * with the first request that needs it.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError } from '@sluice/sdk'
import { answerProbe } from '../routes/health.ts'
import { type ClosableServer, createClosableServer, type Timeouts } from './closable-server.ts'
import { bindControlSocket } from './control-socket.ts'
import { Mounted } from './host-requests.ts'
import type { Application, ServerParts } from './server.ts'

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

export interface Bound {
  /** `http://host:port`. */
  readonly url: string
  /** The host that was asked for; with a given socket, its address. */
  readonly host: string
  readonly port: number
}

export interface Listening extends Bound, Pick<HttpSide, 'close' | 'endStreams'> {}

const BACKLOG = 1024
/** The time that requests over the control socket have to end, after those over the port. */
const CONTROL_GRACE_MS = 1000
/** Without any request the application is loaded after this time, so that the first request does not wait for it. */
const LOAD_AFTER_MS = 250

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
  readonly #options: HttpOptions & ServerParts
  /** Attach the application to the servers that wait for it. */
  readonly #attach: ((application: Application) => void)[] = []
  #loading: Promise<Application> | undefined
  readonly #servers: ClosableServer[] = []
  readonly #bound: Bound[] = []
  #control: ClosableServer | undefined
  #closing: Promise<void> | undefined

  constructor(options: HttpOptions) {
    this.#options = { ...options, url: () => this.#bound[0]?.url ?? null }
    this.mounted = new Mounted(() => this.#load())
    this.#serve(this.mounted.server)
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
  readonly endStreams = async (reason: string): Promise<void> => (await this.#load()).endStreams(reason)

  async #close(graceMs: number): Promise<void> {
    await Promise.all([this.mounted.close(graceMs), ...this.#servers.map((server) => server.close(graceMs))])
    await this.#control?.close(Math.min(graceMs, CONTROL_GRACE_MS))
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
    const made = createClosableServer(this.#options.timeouts)
    this.#serve(made.server, operator)
    return made
  }

  /**
   * Until the application is loaded, answers probes at once; every other request loads the application and waits for it. With `operator`,
   * every peer of the server is this operator.
   */
  #serve(server: Server, operator?: string): void {
    const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse & { req: IncomingMessage }): void => {
      if (!answerProbe(this.#options.runtime, incoming, outgoing)) void this.#load().then(() => server.emit('request', incoming, outgoing))
    }
    const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
      socket.on('error', () => socket.destroy())
      void this.#load().then(() => server.emit('upgrade', request, socket, head))
    }
    server.on('request', onRequest).on('upgrade', onUpgrade)
    this.#attach.push((application) => {
      server.off('request', onRequest).off('upgrade', onUpgrade)
      server.on('request', application.serve(server, operator))
    })
  }

  /** Resolves once the application serves the requests of all servers. Loads it only once. */
  #load(): Promise<Application> {
    this.#loading ??= this.#loadApplication()
    return this.#loading
  }

  async #loadApplication(): Promise<Application> {
    const [{ createApplication }] = await Promise.all([import('./server.ts'), this.#options.ready])
    const application = createApplication(this.#options)
    for (const attach of this.#attach) attach(application)
    return application
  }

  #loadSoon(): void {
    void this.#options.runtime.clock.sleep(LOAD_AFTER_MS).then(() => this.#load())
  }
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
