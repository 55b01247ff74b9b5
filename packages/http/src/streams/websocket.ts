/** WebSockets: the way from a request to an open socket, and the heartbeat of open sockets. */
import type { Socket } from 'node:net'
import type { LimitedClient } from '@sluice/agent'
import type { People } from '@sluice/delivery'
import { every } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { WebSocket } from 'ws'
import { bearerToken } from '../auth/auth.ts'
import { countedClient } from '../auth/identity.ts'
import type { CredentialReader } from '../middleware/authenticate.ts'
import { type Caller, type HttpContext, headersOf, type Step } from '../request/context.ts'
import type { Connection, Connections, EndCode } from './connections.ts'
import { SUBPROTOCOL, type UpgradeConnection } from './upgrades.ts'

/** The longest reason that fits into a close frame, with some room to spare. */
const REASON_LENGTH_MAX = 120

const TOKEN_PREFIX = 'bearer.'

/** Describes the subprotocols in the OpenAPI document. */
export const socketProtocols = {
  'Sec-WebSocket-Protocol': `\`${SUBPROTOCOL}, bearer.<token>\`, for clients that cannot set \`Authorization\``,
}

/** Browsers cannot set `Authorization`. They offer the token as a subprotocol, `bearer.<token>`, which is never echoed. */
export const socketCredential: CredentialReader = (c) => {
  const headers = headersOf(c)
  if (bearerToken(headers)) return headers
  const offered = (headers.get('sec-websocket-protocol') ?? '').split(',').map((protocol) => protocol.trim())
  const token = offered.find((protocol) => protocol.startsWith(TOKEN_PREFIX))?.slice(TOKEN_PREFIX.length)
  return { get: (name) => (name === 'authorization' && token ? `Bearer ${token}` : headers.get(name)) }
}

/** Takes over an open socket, and the connection under it. It may add a listener for messages, and no other. */
export type OpenSocket = (socket: WebSocket, transport: Socket) => SocketUser

/** The caller as its connection remembers it. */
type ConnectionUser = Pick<Connection, 'tokenHash' | 'client'>

/** Who has taken over a socket. */
export interface SocketUser {
  /** The daemon ends the socket with this code: input that arrives from now on must have no effect, however long the peer keeps its connection. */
  stopInput(code: EndCode): void
  /** The socket has closed. */
  closed(): void
}

/**
 * Answers the upgrade and hands the open socket to the function that `prepare` returned; needs `caller`. A refusal (no room, or
 * anything that `prepare` throws) is an HTTP answer. The connection counts from here to the end of its TCP connection, so that
 * a device that is revoked during the handshake loses its socket too. `userOf` names the credential whose end ends the socket, and the client
 * whose share it counts for.
 */
export const upgrade =
  (
    { connections, people, watch }: OpenSockets,
    prepare: (c: HttpContext, caller: Caller) => OpenSocket | Promise<OpenSocket>,
    userOf = ({ tokenHash, person, role }: Caller): ConnectionUser => ({ tokenHash, client: countedClient(people, person, role) }),
  ): Step =>
  async (c) => {
    if (!isUpgrade(c.env)) {
      throw new AppError('invalid_request', 'This path is for WebSockets: ask for it with Upgrade: websocket')
    }
    const upgrading = c.env
    const transport = upgrading.incoming.socket
    if (transport.destroyed) throw new AppError('aborted', 'The client disconnected before it was admitted')
    const caller = c.get('caller')
    const user = userOf(caller)
    connections.checkRoom(user.client)
    const connection = new SocketConnection(transport, user)
    const leave = (): void => connections.remove(connection)
    connections.add(connection)
    transport.on('close', leave)
    const open = await prepare(c, caller)
    upgrading.accept = (socket) => {
      transport.removeListener('close', leave)
      shrinkListeners(transport)
      connection.socket = socket
      connection.user = open(socket, transport)
      watch(socket, connection)
    }
    return new Response()
  }

const isUpgrade = (connection: HttpContext['env'] | undefined): connection is UpgradeConnection =>
  connection !== undefined && 'accept' in connection

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
  readonly client: LimitedClient | undefined
  /** Undefined during the handshake. */
  socket: WebSocket | undefined
  /** Undefined until the socket was taken over. */
  user: SocketUser | undefined
  /** Whole milliseconds, which need no memory of their own for 24 days. */
  lastPongMs = 0
  readonly #transport: Socket

  constructor(transport: Socket, { tokenHash, client }: ConnectionUser) {
    this.#transport = transport
    this.tokenHash = tokenHash
    this.client = client
  }

  end(code: EndCode, reason: string): void {
    if (this.socket) {
      this.user?.stopInput(code)
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
  /** The people whose shares the sockets count for. */
  readonly people: Pick<People, 'principal'>
  /**
   * Pings the socket, terminates it if it does not answer, and removes its connection once it has closed. All sockets share one timer and
   * their listeners: listeners of its own would take 200 bytes more.
   */
  watch(socket: WebSocket, connection: SocketConnection): void
}

export function createOpenSockets(
  { connections, people }: Pick<OpenSockets, 'connections' | 'people'>,
  clock: Clock,
  signal: AbortSignal,
): OpenSockets {
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
    people,
    watch(socket, connection) {
      connection.lastPongMs = nowMs()
      open.set(socket, connection)
      socket.on('error', ignore).on('pong', onPong).on('close', onClose)
    },
  }
}
