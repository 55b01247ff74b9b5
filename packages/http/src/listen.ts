/** The HTTP server: its sockets, what they may cost, and how they end. */
import { createServer, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { AppError } from '@sluice/sdk'
import type { ApplicationOptions } from './application.ts'
import { answerClientError } from './client-error.ts'
import { serveLazily } from './serve-lazily.ts'

export interface ListenOptions extends ApplicationOptions {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** Instead of the usual ones. */
  readonly timeouts?: Pick<ServerOptions, 'headersTimeout' | 'requestTimeout' | 'keepAliveTimeout' | 'connectionsCheckingInterval'>
}

export interface Listening {
  /** `http://host:port`. */
  readonly url: string
  readonly port: number
  /**
   * Accepts nothing more, closes idle connections, lets running requests finish for at most `graceMs`, then ends what is
   * left. Idempotent.
   */
  close(graceMs: number): Promise<void>
  /** Ends every stream in good order, and admits no more: streams end by nothing else. */
  endStreams(reason: string): Promise<void>
}

const BACKLOG = 1024
const IDLE_SWEEP_MS = 50
/** Nobody asking, the application is loaded all the same, so that the first request does not wait for it. */
const LOAD_AFTER_MS = 250

/** A client that is slow to say what it wants loses its connection. */
const SERVER_OPTIONS: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: 30_000,
  maxHeaderSize: 16_384,
  shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
}

/** Resolves once connections are accepted. Rejects with `conflict` when the port is taken. */
export async function listen({ host, port, timeouts, ...options }: ListenOptions): Promise<Listening> {
  const { runtime } = options
  const server = createServer({ ...SERVER_OPTIONS, ...timeouts })
  const load = serveLazily(server, options)
  const open = new Set<Socket>()
  const limitConnections = (): void => {
    server.maxConnections = runtime.live().config.max_connections
  }
  limitConnections()
  server.on('connection', limitConnections).on('drop', limitConnections).on('clientError', answerClientError)
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  await bind(server, host, port)
  server.on('error', (error) => runtime.log.error('the HTTP server failed', { error }))
  void runtime.clock.sleep(LOAD_AFTER_MS).then(load)
  const address = server.address() as AddressInfo

  let closing: Promise<void> | undefined
  const close = async (graceMs: number): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS)
    const end = setTimeout(() => {
      for (const socket of open) socket.destroy()
    }, graceMs)
    await closed
    clearInterval(sweep)
    clearTimeout(end)
  }
  return {
    url: `http://${urlHost(host)}:${address.port}`,
    port: address.port,
    close(graceMs) {
      closing ??= close(graceMs)
      return closing
    },
    endStreams: async (reason) => (await load()).endStreams(reason),
  }
}

const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const bind = (server: Server, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException): void => reject(bindError(cause, `${urlHost(host)}:${port}`))
    server.once('error', fail)
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', fail)
      resolve()
    })
  })

function bindError(cause: NodeJS.ErrnoException, where: string): AppError {
  if (cause.code === 'EADDRINUSE') {
    return new AppError('conflict', `${where} is taken: stop what listens there, or choose another port with --port or [gateway] port`, {
      cause,
    })
  }
  return new AppError('unavailable', `cannot listen on ${where}: ${cause.message}`, { cause })
}
