/** The WebSocket server that HTTP upgrades go to; the library behind it is loaded by the first one. */
import { EventEmitter } from 'node:events'
import type { WebSocketLike, WebSocketServerLike } from '@hono/node-server'
import type { WebSocketServer } from 'ws'

/** A larger message closes its connection with 1009. */
const MESSAGE_BYTES_MAX = 256 * 1024
/**
 * In how many pieces the bytes of a message may arrive: each costs memory until the message is whole. More closes its
 * connection with 1008.
 */
const PIECES_MAX = 4096
/** How long a peer may take to answer a close frame. */
const CLOSE_MS = 5000

/** The one subprotocol that is echoed: browsers that offer `bearer.<token>` must offer it too. */
const SUBPROTOCOL = 'sluice.v1'

/** For the OpenAPI document. */
export const socketProtocols = { 'Sec-WebSocket-Protocol': `\`${SUBPROTOCOL}, bearer.<token>\`, where \`Authorization\` cannot be set` }

const OPTIONS = {
  noServer: true,
  maxPayload: MESSAGE_BYTES_MAX,
  maxBufferedChunks: PIECES_MAX,
  maxFragments: PIECES_MAX,
  perMessageDeflate: false,
  clientTracking: false,
  closeTimeout: CLOSE_MS,
  // Never echoes what else was offered: it may be a token.
  handleProtocols: (offered: ReadonlySet<string>) => offered.has(SUBPROTOCOL) && SUBPROTOCOL,
} as const

export interface SocketServer extends WebSocketServerLike {
  /** Loads the library; wait for it before an upgrade. */
  ready(): Promise<void>
}

/** For one HTTP server: pass it as `websocket.server` where that is made. */
export function createSocketServer(): SocketServer {
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
      if (!server || isClosed) socket.destroy()
      else server.handleUpgrade(request, socket, head, (opened) => callback(opened as WebSocketLike))
    },
    close() {
      isClosed = true
    },
  }
  return socketServer
}
