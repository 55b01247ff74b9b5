/** `GET /ws/events`: the events of `/api/events`, each as one text message. Messages of the client are ignored. */
import type { Socket } from 'node:net'
import type { EventBus } from '@sluice/runtime'
import type { WebSocket } from 'ws'
import { authenticate } from '../middleware/authenticate.ts'
import { sameOrigin } from '../middleware/origin.ts'
import type { Endpoint, EndpointDoc } from '../request/context.ts'
import type { AppParts } from '../server/app-parts.ts'
import type { FanOut, Member, Sink } from './fan-out.ts'
import type { StreamFrame } from './frames.ts'
import { parseSubscription, type Subscription, subscriptionQuery } from './subscription.ts'
import { type OpenSockets, type SocketUser, socketCredential, socketProtocols, upgrade } from './websocket.ts'

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
  readonly fanOut: FanOut
  readonly open: OpenSockets
}

export const eventSocketEndpoint = (sockets: EventSockets, parts: AppParts): Endpoint => ({
  doc,
  steps: [
    sameOrigin(parts.snapshot.gateway),
    authenticate('client', parts, socketCredential),
    upgrade(sockets.open, (c) => {
      const subscription = parseSubscription(c)
      return (socket, transport) => new EventSocket(sockets, socket, transport, subscription)
    }),
  ],
})

/** One object for all roles: a sink and a listener of their own would take 90 bytes more. */
class EventSocket implements Sink, SocketUser {
  readonly #socket: WebSocket
  readonly #transport: Socket
  readonly #fanOut: FanOut
  readonly #member: Member

  constructor({ bus, fanOut }: EventSockets, socket: WebSocket, transport: Socket, subscription: Subscription) {
    this.#socket = socket
    this.#transport = transport
    this.#fanOut = fanOut
    socket.send(JSON.stringify({ type: 'connected', run: bus.run, seq: bus.seq } satisfies StreamFrame))
    this.#member = fanOut.add(this, subscription)
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
  stopInput(): void {
    this.#fanOut.remove(this.#member)
  }
  closed(): void {
    this.#fanOut.remove(this.#member)
  }
}
