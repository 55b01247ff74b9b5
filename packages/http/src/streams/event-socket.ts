/** `GET /ws/events`: the events of `/api/events`, each as one text message. Messages of the client are ignored. */
import type { Socket } from 'node:net'
import type { EventBus } from '@sluice/runtime'
import type { WebSocket } from 'ws'
import type { AppParts } from '../app-parts.ts'
import type { Endpoint, EndpointDoc } from '../context.ts'
import { authenticate } from '../middleware/authenticate.ts'
import { sameOrigin } from '../middleware/origin.ts'
import type { Connections } from './connections.ts'
import type { FanOut, Sink } from './fan-out.ts'
import type { StreamFrame } from './frames.ts'
import { parseSubscription, type Subscription, subscriptionQuery } from './subscription.ts'
import { type Heartbeat, socketCredential, socketProtocols, upgrade } from './websocket.ts'

const doc: EndpointDoc = {
  method: 'GET',
  path: '/ws/events',
  summary: 'Follow events over a WebSocket',
  auth: 'client',
  headers: socketProtocols,
  query: subscriptionQuery,
  answers: {
    101: {
      description:
        'A WebSocket; each message is a `#/components/schemas/StreamFrame` (the first one is `connected`) or a `#/components/schemas/Event`',
    },
  },
}

/** The events as WebSockets get them. */
export interface EventSockets {
  readonly bus: EventBus
  readonly connections: Connections
  readonly fanOut: FanOut
  readonly heartbeat: Heartbeat
}

export const eventSocketEndpoint = (sockets: EventSockets, parts: AppParts): Endpoint => ({
  doc,
  steps: [
    sameOrigin(parts.snapshot.gateway),
    authenticate('client', parts, socketCredential),
    upgrade(sockets.connections, (c) => {
      const subscription = parseSubscription(c)
      return (socket, transport) => subscribe(sockets, socket, transport, subscription)
    }),
  ],
})

/** Returns an unsubscribe function. */
function subscribe({ bus, fanOut, heartbeat }: EventSockets, socket: WebSocket, transport: Socket, subscription: Subscription): () => void {
  socket.send(JSON.stringify({ type: 'connected', run: bus.run, seq: bus.seq } satisfies StreamFrame))
  const unsubscribe = fanOut.add(new SocketSink(socket, transport), subscription)
  heartbeat.watch(socket)
  socket.on('close', () => {
    unsubscribe()
    heartbeat.unwatch(socket)
  })
  return unsubscribe
}

class SocketSink implements Sink {
  readonly #socket: WebSocket
  readonly #transport: Socket

  constructor(socket: WebSocket, transport: Socket) {
    this.#socket = socket
    this.#transport = transport
  }
  bufferedBytes(): number {
    return this.#transport.writableLength
  }
  /** Writes past the library, which buffers nothing itself while it neither compresses nor fragments. */
  write(frame: Buffer): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#transport.write(frame)
  }
  destroy(): void {
    this.#transport.destroy()
  }
}
