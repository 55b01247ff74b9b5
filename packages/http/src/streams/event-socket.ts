/** `/ws/events`: the events of `/api/events`, each as one text message (§6). Says nothing back to what a client sends. */
import type { Socket } from 'node:net'
import type { EventBus } from '@sluice/runtime'
import type { WebSocket } from 'ws'
import type { Endpoint, EndpointDoc } from '../endpoint.ts'
import type { Gate } from '../gate.ts'
import type { Connections } from './connections.ts'
import type { FanOut, Sink, Subscription } from './fan-out.ts'
import type { StreamFrame } from './frames.ts'
import type { Heartbeat } from './heartbeat.ts'
import { socketProtocols } from './socket-server.ts'
import { upgradeSocket } from './socket-upgrade.ts'
import { parseSubscription, subscriptionQuery } from './subscription.ts'

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

export interface EventSocketDeps {
  readonly bus: EventBus
  readonly connections: Connections
  readonly fanOut: FanOut
  readonly heartbeat: Heartbeat
}

export function eventSocketEndpoint({ bus, connections, fanOut, heartbeat }: EventSocketDeps, gate: Gate): Endpoint {
  const open = (socket: WebSocket, transport: Socket, subscription: Subscription): (() => void) => {
    socket.send(JSON.stringify({ type: 'connected', run: bus.run, seq: bus.seq } satisfies StreamFrame))
    const leaveFanOut = fanOut.add(new SocketSink(socket, transport), subscription)
    const stopBeating = heartbeat.watch(socket)
    socket.on('close', () => {
      leaveFanOut()
      stopBeating()
    })
    return leaveFanOut
  }
  return {
    doc,
    serve: (c) =>
      upgradeSocket(c, { gate, connections, auth: doc.auth }, (caller) => {
        const subscription = parseSubscription(c, caller)
        return (socket, transport) => open(socket, transport, subscription)
      }),
  }
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
  /** Past the library, which keeps nothing back while it neither compresses nor fragments. */
  write(frame: Buffer): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#transport.write(frame)
  }
  destroy(): void {
    this.#transport.destroy()
  }
}
