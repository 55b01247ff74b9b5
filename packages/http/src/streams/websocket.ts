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

/**
 * Takes over an open socket, which has an error listener and no other, and the connection under it. The returned function is
 * called when the daemon ends the socket: input that arrives from then on must have no effect, however long the peer keeps its
 * connection.
 */
export type OpenSocket = (socket: WebSocket, transport: Socket) => () => void

/**
 * Answers the upgrade and hands the open socket to the function that `prepare` returned; needs `caller`. A refusal (no room, or
 * anything that `prepare` throws) is an HTTP answer. The connection counts from here to the end of its TCP connection, so that
 * a device that is revoked during the handshake loses its socket too. `credentialOf` names the credential whose end ends the socket.
 */
export const upgrade =
  (
    connections: Connections,
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
    transport.on('close', connections.add(connection))
    await wss.ready()
    const open = await prepare(c, caller)
    return upgradeWebSocket(c, {
      onOpen: (_event, { raw }) => {
        const socket = raw as unknown as WebSocket
        connection.socket = socket
        // The adaptor adds its listeners right after this call. They would keep the request for as long as the socket lives.
        queueMicrotask(() => {
          for (const event of ['message', 'close', 'error']) socket.removeAllListeners(event)
          socket.on('error', ignore)
          connection.stopInput = open(socket, transport)
        })
      },
    })
  }

/** The library closes the socket with the code of the protocol error; nothing else is to do. */
const ignore = (): undefined => undefined

class SocketConnection implements Connection {
  readonly kind = 'ws'
  readonly tokenHash: string | null
  /** Undefined during the handshake. */
  socket: WebSocket | undefined
  /** See `OpenSocket`. */
  stopInput = (): void => undefined
  readonly #transport: Socket

  constructor(transport: Socket, tokenHash: string | null) {
    this.#transport = transport
    this.tokenHash = tokenHash
  }

  end(code: EndCode, reason: string): void {
    if (this.socket) {
      this.stopInput()
      this.socket.removeAllListeners('message')
      this.socket.close(code, reason.slice(0, REASON_LENGTH_MAX))
    } else this.#transport.destroy()
  }
}

export const PING_MS = 25_000
/** A socket that sent no pong for this time is terminated at the next ping. */
export const SILENCE_MS_MAX = 60_000

/** Pings all WebSockets with one timer. Terminates a socket that does not answer. */
export interface Heartbeat {
  watch(socket: WebSocket): void
  /** Call it once the socket has closed. */
  unwatch(socket: WebSocket): void
}

export function createHeartbeat(clock: Clock, signal: AbortSignal): Heartbeat {
  const lastPongMs = new Map<WebSocket, number>()

  // One function for all sockets: the socket is its `this`.
  function onPong(this: WebSocket): void {
    if (lastPongMs.has(this)) lastPongMs.set(this, clock.monotonicMs())
  }

  void every(clock, PING_MS, signal, () => {
    for (const [socket, atMs] of lastPongMs) {
      if (clock.monotonicMs() - atMs >= SILENCE_MS_MAX) socket.terminate()
      else socket.ping()
    }
  })

  return {
    watch(socket) {
      lastPongMs.set(socket, clock.monotonicMs())
      socket.on('pong', onPong)
    },
    unwatch(socket) {
      lastPongMs.delete(socket)
    },
  }
}
