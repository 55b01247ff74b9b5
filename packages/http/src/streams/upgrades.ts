/**
 * Answers upgrades to WebSockets: the application sees each as a request, and the connection goes to the library once a route has accepted
 * it. The adaptor of the application could do it, too, but makes a whole `Request` with its abort signal and a second set of events: 15 KB
 * of garbage more for each upgrade, which stay until the next full collection.
 */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError } from '@sluice/sdk'
import type { WebSocket, WebSocketServer } from 'ws'
import type { Connection } from '../request/context.ts'

/** A larger message closes its connection with 1009. */
const MESSAGE_BYTES_MAX = 256 * 1024
/** A message that arrives in more pieces closes its connection with 1008: each piece costs memory until the message is whole. */
const PIECES_MAX = 4096
/** The time that a peer has to answer a close frame. */
const CLOSE_MS = 5000

/** A peer whose upgrade was refused loses its connection after this time, or up to half of it earlier. */
const REFUSED_UPGRADE_MS = 10_000

/** The only subprotocol that is echoed: browsers that offer `bearer.<token>` must offer it too. */
export const SUBPROTOCOL = 'sluice.v1'

const OPTIONS = {
  noServer: true,
  maxPayload: MESSAGE_BYTES_MAX,
  maxBufferedChunks: PIECES_MAX,
  maxFragments: PIECES_MAX,
  perMessageDeflate: false,
  clientTracking: false,
  closeTimeout: CLOSE_MS,
  // The other offered protocols are never echoed, because one may be a token.
  handleProtocols: (offered: ReadonlySet<string>) => offered.has(SUBPROTOCOL) && SUBPROTOCOL,
} as const

/** The connection of a request that asks for an upgrade. */
export interface UpgradeConnection extends Connection {
  readonly incoming: IncomingMessage
  /** A route that accepts the upgrade sets the function that takes over the open socket. */
  accept: ((socket: WebSocket) => void) | undefined
}

/** The first upgrade that a route accepts loads the library. */
export function serveUpgrades(
  server: Server,
  fetch: (request: Request, connection: UpgradeConnection) => Response | Promise<Response>,
): void {
  const pending = new PendingUpgrades()
  let library: WebSocketServer | undefined
  /** The headers of the answer that is being sent. */
  let headers: readonly string[] = []
  let isClosed = false
  const load = async (): Promise<WebSocketServer> => {
    const ws = await import('ws')
    library ??= new ws.WebSocketServer(OPTIONS).on('headers', (lines) => lines.push(...headers))
    return library
  }
  const answer = async (incoming: IncomingMessage, transport: Duplex, head: Buffer): Promise<void> => {
    pending.add(transport)
    const connection: UpgradeConnection = { incoming, accept: undefined }
    const response = await fetch(new UpgradeRequest(incoming) as unknown as Request, connection)
    const { accept } = connection
    if (!accept) return refuse(transport, response.status, headerLines(response.headers))
    const sockets = library ?? (await load())
    if (isClosed) transport.destroy()
    if (transport.destroyed) return
    pending.end(transport)
    transport.removeListener('error', ignore)
    headers = headerLines(response.headers)
    sockets.handleUpgrade(incoming, transport, head, accept)
    headers = []
  }
  server.on('upgrade', (incoming: IncomingMessage, transport: Duplex, head: Buffer) => {
    if (incoming.headers.upgrade?.toLowerCase() !== 'websocket') return
    transport.on('error', ignore)
    answer(incoming, transport, head).catch((error: unknown) => refuse(transport, error instanceof AppError ? 400 : 500, []))
  })
  server.on('close', () => {
    isClosed = true
  })
}

/**
 * Ends the connections whose upgrades were refused, with one timer for all. A timer of each socket stays in its memory after the upgrade,
 * with its listener: 0.4 KiB for each subscriber by WebSocket.
 */
class PendingUpgrades {
  #newer = new Set<Duplex>()
  #older = new Set<Duplex>()
  #timer: NodeJS.Timeout | undefined

  add(transport: Duplex): void {
    this.#newer.add(transport)
    this.#timer ??= setInterval(() => this.#endOlder(), REFUSED_UPGRADE_MS / 2).unref()
  }

  /** Call it when the upgrade was granted. */
  end(transport: Duplex): void {
    this.#newer.delete(transport)
    this.#older.delete(transport)
  }

  #endOlder(): void {
    for (const transport of this.#older) transport.destroy()
    this.#older = this.#newer
    this.#newer = new Set()
    if (this.#older.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** The connection closes by itself; nothing else is to do. */
const ignore = (): undefined => undefined

/** The library writes these itself, or an answer without a body has none. */
const WRITTEN = new Set([
  ...['connection', 'content-length', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding'],
  ...['upgrade', 'sec-websocket-accept', 'sec-websocket-extensions', 'sec-websocket-protocol'],
])

const headerLines = (headers: Headers): string[] => [...headers].flatMap(([name, value]) => (WRITTEN.has(name) ? [] : `${name}: ${value}`))

function refuse(transport: Duplex, status: number, lines: readonly string[]): void {
  if (transport.destroyed) return
  const all = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, 'Connection: close', 'Content-Length: 0', ...lines]
  transport.end(`${all.join('\r\n')}\r\n\r\n`)
}

/** The members of a `Request` that the application reads. Most routes need no `headers`, so these are made on first use. */
class UpgradeRequest {
  readonly method = 'GET'
  readonly url: string
  readonly #incoming: IncomingMessage
  #headers: Headers | undefined

  /** Throws `invalid_request` if the target or the `Host` header is not valid. */
  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming
    this.url = urlOf(incoming)
  }

  get headers(): Headers {
    this.#headers ??= new Headers(
      Object.entries(this.#incoming.headers).flatMap(([name, value = []]) => [value].flat().map((one): [string, string] => [name, one])),
    )
    return this.#headers
  }
}

const ABSOLUTE = /^https?:\/\//

function urlOf({ headers: { host = 'localhost' }, url: target = '/', socket }: IncomingMessage): string {
  const scheme = 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http'
  const isAbsolute = ABSOLUTE.test(target)
  const url = URL.parse(isAbsolute ? target : `${scheme}://${host}${target}`)
  const isValid =
    (isAbsolute || (target.startsWith('/') && url?.hostname === host.replace(/:\d+$/, '').toLowerCase())) && !hasBackslash(target)
  if (!url || !isValid) throw new AppError('invalid_request', 'The request target or the Host header is not valid')
  return url.href
}

/** A backslash of the path would become a slash. */
const hasBackslash = (target: string): boolean => target.split('?', 1)[0]?.includes('\\') ?? false
