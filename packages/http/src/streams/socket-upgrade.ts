/** From an HTTP request to an open WebSocket: credential, room, handshake; then the request is let go. */
import type { Socket } from 'node:net'
import { type HttpBindings, upgradeWebSocket } from '@hono/node-server'
import type { HeaderReader } from '@sluice/runtime'
import { AppError, type RouteAuth } from '@sluice/sdk'
import type { WebSocket } from 'ws'
import { bearerToken } from '../auth.ts'
import type { Caller, Gate, HttpContext } from '../gate.ts'
import type { Connections, EndCode } from './connections.ts'
import type { SocketServer } from './socket-server.ts'

const PROTOCOL_PREFIX = 'bearer.'
/** A close frame has room for this much. */
const REASON_LENGTH_MAX = 120

/**
 * Takes over an open socket, which has an error listener and no other, and the connection under it. What it returns is called
 * when the daemon ends the socket: nothing may come of input from then on, however long the peer keeps its connection.
 */
export type OpenSocket = (socket: WebSocket, transport: Socket) => () => void

/**
 * Answers the upgrade and hands the open socket to what `prepare` returned. A refusal (foreign origin, bad credential, no
 * room, whatever `prepare` throws) is an HTTP answer. The connection counts from here to the end of its TCP connection, so
 * that a device revoked meanwhile does not slip through.
 */
export async function upgradeSocket(
  c: HttpContext,
  { gate, connections, auth }: { readonly gate: Gate; readonly connections: Connections; readonly auth: RouteAuth },
  prepare: (caller: Caller) => OpenSocket | Promise<OpenSocket>,
): Promise<Response> {
  const caller = await gate.admit(c, auth, socketCredential(c.req.raw.headers))
  const { incoming, wss } = (c.env ?? {}) as Partial<HttpBindings & { wss: SocketServer }>
  if (!incoming || !wss || c.req.header('upgrade')?.toLowerCase() !== 'websocket') {
    throw new AppError('invalid_request', 'This path is for WebSockets: ask for it with Upgrade: websocket')
  }
  const transport = incoming.socket
  if (transport.destroyed) throw new AppError('aborted', 'The client left before it was let in')
  connections.checkRoom()
  const connection = new SocketConnection(transport, caller.tokenHash)
  transport.on('close', connections.add(connection))
  await wss.ready()
  const open = await prepare(caller)
  return upgradeWebSocket(c, {
    onOpen: (_event, { raw }) => {
      const socket = raw as unknown as WebSocket
      connection.socket = socket
      // The adapter is about to add its listeners, and they hold on to the request for as long as the socket lives.
      queueMicrotask(() => {
        for (const event of ['message', 'close', 'error']) socket.removeAllListeners(event)
        socket.on('error', ignore)
        connection.stopInput = open(socket, transport)
      })
    },
  })
}

/** A protocol error closes the socket with its code; there is nobody else to tell. */
const ignore = (): undefined => undefined

/** Browsers cannot set `Authorization`; they offer the token as a subprotocol, `bearer.<token>`, which is never echoed. */
function socketCredential(headers: Headers): HeaderReader {
  if (bearerToken(headers)) return headers
  const offered = (headers.get('sec-websocket-protocol') ?? '').split(',').map((protocol) => protocol.trim())
  const token = offered.find((protocol) => protocol.startsWith(PROTOCOL_PREFIX))?.slice(PROTOCOL_PREFIX.length)
  return { get: (name) => (name === 'authorization' && token ? `Bearer ${token}` : headers.get(name)) }
}

class SocketConnection {
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
