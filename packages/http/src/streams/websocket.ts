/** WebSockets: the server that upgrades go to, the way from a request to an open socket, and the heartbeat of open sockets. */
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type HttpBindings, upgradeWebSocket, type WebSocketLike, type WebSocketServerLike } from '@hono/node-server'
import { every } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { WebSocket, WebSocketServer } from 'ws'
import { bearerToken } from '../auth.ts'
import type { Caller, HttpContext, Step } from '../context.ts'
import type { CredentialReader } from '../middleware/authenticate.ts'
import type { Connection, Connections, EndCode } from './connections.ts'

/** A larger message closes its connection with 1009. */
const MESSAGE_BYTES_MAX = 256 * 1024
/** A message that arrives in more pieces closes its connection with 1008: each piece costs memory until the message is whole. */
const PIECES_MAX = 4096
/** The time that a peer has to answer a close frame. */
const CLOSE_MS = 5000
/** The longest reason that fits into a close frame, with some room to spare. */
const REASON_LENGTH_MAX = 120

/** The only subprotocol that is echoed: browsers that offer `bearer.<token>` must offer it too. */
const SUBPROTOCOL = 'sluice.v1'
const TOKEN_PREFIX = 'bearer.'

/** Describes the subprotocols in the OpenAPI document. */
export const socketProtocols = {
  'Sec-WebSocket-Protocol': `\`${SUBPROTOCOL}, bearer.<token>\`, for clients that cannot set \`Authorization\``,
}

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

/** The WebSocket server of one HTTP server: pass it as `websocket.server` to the adaptor. The first upgrade loads the library. */
export interface SocketServer extends WebSocketServerLike {
  /** Loads the library; wait for it before an upgrade. */
  ready(): Promise<void>
}

/** `onUpgrade` is called with each connection whose upgrade begins. */
export function createSocketServer(onUpgrade: (transport: Duplex) => void = () => {}): SocketServer {
  const events = new EventEmitter()
  let server: WebSocketServer | undefined
  let isClosed = false

  const socketServer: SocketServer = {
    options: { noServer: true },
    async ready() {
      if (server) return
      const ws = await import('ws')
      server ??= new ws.WebSocketServer(OPTIONS).on('headers', (headers) => events.emit('headers', headers))
    },
    on(event: string, listener: (...values: never[]) => void) {
      events.on(event, listener as never)
      return socketServer
    },
    off(event: string, listener: (...values: never[]) => void) {
      events.off(event, listener as never)
      return socketServer
    },
    emit: (event, ...values) => events.emit(event, ...values),
    handleUpgrade(request, socket, head, callback) {
      onUpgrade(socket)
      if (!server || isClosed) socket.destroy()
      else server.handleUpgrade(request, socket, head, (opened) => callback(opened as WebSocketLike))
    },
    close() {
      isClosed = true
    },
  }
  return socketServer
}

/** Browsers cannot set `Authorization`. They offer the token as a subprotocol, `bearer.<token>`, which is never echoed. */
export const socketCredential: CredentialReader = (c) => {
  const { headers } = c.req.raw
  if (bearerToken(headers)) return headers
  const offered = (headers.get('sec-websocket-protocol') ?? '').split(',').map((protocol) => protocol.trim())
  const token = offered.find((protocol) => protocol.startsWith(TOKEN_PREFIX))?.slice(TOKEN_PREFIX.length)
  return { get: (name) => (name === 'authorization' && token ? `Bearer ${token}` : headers.get(name)) }
}

/** Takes over an open socket, and the connection under it. It may add a listener for messages, and no other. */
export type OpenSocket = (socket: WebSocket, transport: Socket) => SocketUser

/** Who has taken over a socket. */
export interface SocketUser {
  /** The daemon ends the socket: input that arrives from now on must have no effect, however long the peer keeps its connection. */
  stopInput(): void
  /** The socket has closed. */
  closed(): void
}

/**
 * Answers the upgrade and hands the open socket to the function that `prepare` returned; needs `caller`. A refusal (no room, or
 * anything that `prepare` throws) is an HTTP answer. The connection counts from here to the end of its TCP connection, so that
 * a device that is revoked during the handshake loses its socket too. `credentialOf` names the credential whose end ends the socket.
 */
export const upgrade =
  (
    { connections, watch }: OpenSockets,
    prepare: (c: HttpContext, caller: Caller) => OpenSocket | Promise<OpenSocket>,
    credentialOf = ({ tokenHash }: Caller): string | null => tokenHash,
  ): Step =>
  async (c) => {
    const { incoming, wss } = (c.env ?? {}) as Partial<HttpBindings & { wss: SocketServer }>
    if (!incoming || !wss || c.req.header('upgrade')?.toLowerCase() !== 'websocket') {
      throw new AppError('invalid_request', 'This path is for WebSockets: ask for it with Upgrade: websocket')
    }
    const transport = incoming.socket
    if (transport.destroyed) throw new AppError('aborted', 'The client disconnected before it was admitted')
    connections.checkRoom()
    const caller = c.get('caller')
    const connection = new SocketConnection(transport, credentialOf(caller))
    const leave = (): void => connections.remove(connection)
    connections.add(connection)
    transport.on('close', leave)
    await wss.ready()
    const open = await prepare(c, caller)
    return upgradeWebSocket(c, {
      onOpen: (_event, { raw }) => {
        const socket = raw as unknown as WebSocket
        connection.socket = socket
        // The adaptor adds its listeners right after this call. They would keep the request for as long as the socket lives.
        queueMicrotask(() => {
          for (const event of ['message', 'close', 'error']) socket.removeAllListeners(event)
          transport.removeListener('close', leave)
          shrinkListeners(transport)
          connection.user = open(socket, transport)
          watch(socket, connection)
        })
      },
    })
  }

/** The library closes the socket with the code of the protocol error; nothing else is to do. */
const ignore = (): undefined => undefined

/** A list that had three listeners, as during the handshake, keeps room for 19. Listing them again takes 144 bytes less for each socket. */
function shrinkListeners(transport: Socket): void {
  const others = transport.rawListeners('close').slice(1) as (() => void)[]
  for (const listener of others) transport.removeListener('close', listener)
  for (const listener of others) transport.on('close', listener)
}

class SocketConnection implements Connection {
  readonly kind = 'ws'
  readonly tokenHash: string | null
  /** Undefined during the handshake. */
  socket: WebSocket | undefined
  /** Undefined until the socket was taken over. */
  user: SocketUser | undefined
  /** Whole milliseconds, which need no memory of their own for 24 days. */
  lastPongMs = 0
  readonly #transport: Socket

  constructor(transport: Socket, tokenHash: string | null) {
    this.#transport = transport
    this.tokenHash = tokenHash
  }

  end(code: EndCode, reason: string): void {
    if (this.socket) {
      this.user?.stopInput()
      this.socket.removeAllListeners('message')
      this.socket.close(code, reason.slice(0, REASON_LENGTH_MAX))
    } else this.#transport.destroy()
  }
}

export const PING_MS = 25_000
/** A socket that sent no pong for this time is terminated at the next ping. */
export const SILENCE_MS_MAX = 60_000

/** The open sockets of one daemon. */
export interface OpenSockets {
  readonly connections: Connections
  /**
   * Pings the socket, terminates it if it does not answer, and removes its connection once it has closed. All sockets share one timer and
   * their listeners: listeners of its own would take 200 bytes more.
   */
  watch(socket: WebSocket, connection: SocketConnection): void
}

export function createOpenSockets(connections: Connections, clock: Clock, signal: AbortSignal): OpenSockets {
  const open = new Map<WebSocket, SocketConnection>()
  const nowMs = (): number => Math.floor(clock.monotonicMs())

  // One function for all sockets: the socket is its `this`.
  function onPong(this: WebSocket): void {
    const connection = open.get(this)
    if (connection) connection.lastPongMs = nowMs()
  }
  function onClose(this: WebSocket): void {
    const connection = open.get(this)
    if (!connection) return
    open.delete(this)
    connections.remove(connection)
    connection.user?.closed()
  }

  void every(clock, PING_MS, signal, () => {
    for (const [socket, { lastPongMs }] of open) {
      if (nowMs() - lastPongMs >= SILENCE_MS_MAX) socket.terminate()
      else socket.ping()
    }
  })

  return {
    connections,
    watch(socket, connection) {
      connection.lastPongMs = nowMs()
      open.set(socket, connection)
      socket.on('error', ignore).on('pong', onPong).on('close', onClose)
    },
  }
}
