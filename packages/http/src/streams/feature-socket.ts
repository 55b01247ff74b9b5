/** Serves the WebSockets of features: they count, end and are kept alive like the daemon's own WebSockets. */
import type { FeatureSocket, SocketListener, SocketRoute } from '@sluice/sdk'
import type { WebSocket } from 'ws'
import { authenticate } from '../middleware/authenticate.ts'
import { sameOrigin } from '../middleware/origin.ts'
import type { Endpoint } from '../request/context.ts'
import type { AppParts } from '../server/app-parts.ts'
import { type OpenSockets, type SocketUser, socketCredential, upgrade } from './websocket.ts'

const NORMAL = 1000
/** In the place of the hash of a token, which it never equals. */
const OWN_CHECK = 'checked by the feature'

export const featureSocketEndpoint = (open: OpenSockets, route: SocketRoute, parts: AppParts): Endpoint => ({
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
      open,
      (c) => {
        const takeOver = route.open({ params: c.req.param(), url: new URL(c.req.url), headers: c.req.raw.headers })
        return (socket) => connect(socket, takeOver)
      },
      // A caller whom the feature itself checked does not lose its socket because pairing is required, and has no share.
      route.auth === 'open' ? () => ({ tokenHash: OWN_CHECK, client: undefined }) : undefined,
    ),
  ],
})

function connect(socket: WebSocket, takeOver: (socket: FeatureSocket) => SocketListener): SocketUser {
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
  return { stopInput: end, closed: end }
}
