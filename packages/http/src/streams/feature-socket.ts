/** Serves the WebSockets of features: they count, end and are kept alive like those of the daemon. */
import type { FeatureSocket, SocketListener, SocketRoute } from '@sluice/sdk'
import type { WebSocket } from 'ws'
import type { AppParts } from '../app-parts.ts'
import type { Endpoint } from '../context.ts'
import { authenticate } from '../middleware/authenticate.ts'
import { sameOrigin } from '../middleware/origin.ts'
import type { Connections } from './connections.ts'
import { type Heartbeat, socketCredential, upgrade } from './websocket.ts'

const NORMAL = 1000
/** In the place of the hash of a token, which it never equals. */
const OWN_CHECK = 'checked by the feature'

export interface FeatureSockets {
  readonly connections: Connections
  readonly heartbeat: Heartbeat
}

export const featureSocketEndpoint = (sockets: FeatureSockets, route: SocketRoute, parts: AppParts): Endpoint => ({
  doc: {
    method: 'GET',
    path: route.path,
    summary: route.summary,
    auth: route.auth,
    answers: { 101: { description: 'A WebSocket' } },
  },
  steps: [
    sameOrigin(parts.snapshot.gateway),
    authenticate(route.auth, parts, socketCredential),
    upgrade(
      sockets.connections,
      (c) => {
        const takeOver = route.open({ params: c.req.param(), url: new URL(c.req.url), headers: c.req.raw.headers })
        return (socket) => connect(sockets.heartbeat, socket, takeOver)
      },
      // A caller whom the feature itself checked does not lose its socket because pairing is required.
      ({ tokenHash }) => (route.auth === 'open' ? OWN_CHECK : tokenHash),
    ),
  ],
})

/** Returns a function that stops all input of the peer. */
function connect(heartbeat: Heartbeat, socket: WebSocket, takeOver: (socket: FeatureSocket) => SocketListener): () => void {
  heartbeat.watch(socket)
  let listener: SocketListener | undefined = takeOver({
    send: (data) => {
      if (socket.readyState === socket.OPEN) socket.send(data)
    },
    get bufferedBytes() {
      return socket.bufferedAmount
    },
    close: (code = NORMAL, reason = '') => socket.close(code, reason),
  })
  const end = (): void => {
    listener?.closed()
    listener = undefined
  }
  // With the binary type that the library has by default, each message is one Buffer.
  socket.on('message', (data, isBinary) => listener?.message(isBinary ? (data as Buffer) : data.toString()))
  socket.on('close', () => {
    heartbeat.unwatch(socket)
    end()
  })
  return end
}
