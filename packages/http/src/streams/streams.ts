/** All live streams of one daemon: who may subscribe, what they are sent, and how it all ends (§6). */

import type { Runtime } from '@sluice/runtime'
import { channelEventsRoute } from '@sluice/runtime'
import type { Endpoint } from '../endpoint.ts'
import type { Gate } from '../gate.ts'
import { routeEndpoint } from '../serve-route.ts'
import { chatSocketEndpoint } from './chat-socket.ts'
import { type ConnectionsOptions, createConnections, type SubscriberCounts } from './connections.ts'
import { eventSocketEndpoint } from './event-socket.ts'
import { createFanOut } from './fan-out.ts'
import { socketFraming, sseFraming } from './frames.ts'
import { createHeartbeat } from './heartbeat.ts'
import { keepAlive, sseEndpoint } from './sse.ts'

export interface StreamsOptions {
  readonly runtime: Pick<
    Runtime,
    'agent' | 'approvals' | 'bus' | 'clock' | 'delivery' | 'hideSecrets' | 'log' | 'store' | 'live' | 'snapshot'
  >
  readonly onRevoked: ConnectionsOptions['onRevoked']
  /** Kept up to date. */
  readonly counts: SubscriberCounts
}

/** Made once per daemon: connections outlive a change of the configuration, and with it of the gate. */
export interface Streams {
  /**
   * `GET /api/events`, `/ws/events`, `/ws/chat` and `POST /api/channel-events`. The sockets need a server that was made
   * with `websocket: { server: createSocketServer() }`.
   */
  endpoints(gate: Gate): readonly Endpoint[]
  /** Ends every stream in good order, sockets with 1001, and admits no more. */
  closeAll(reason: string): void
}

export function createStreams({ runtime, onRevoked, counts }: StreamsOptions): Streams {
  const { agent, approvals, bus, clock, log, store, live } = runtime
  const closing = new AbortController()
  const onDropped = () => {
    counts.dropped += 1
  }
  const connections = createConnections({ max: () => live().config.max_subscribers, counts, onRevoked })
  const heartbeat = createHeartbeat(clock, closing.signal)
  const sseFanOut = createFanOut({ bus, clock, framing: sseFraming, onDropped })
  const socketFanOut = createFanOut({ bus, clock, framing: socketFraming, onDropped })
  void keepAlive(sseFanOut, clock, closing.signal)
  bus.subscribe(({ envelope: { type } }) => {
    if (type === 'config_reloaded' && live().config.require_pairing) connections.endUnpaired()
  })
  return {
    endpoints: (gate) => [
      sseEndpoint({ bus, connections, fanOut: sseFanOut }, gate),
      eventSocketEndpoint({ bus, connections, heartbeat, fanOut: socketFanOut }, gate),
      chatSocketEndpoint({ agent, sessions: store.sessions, approvals, log, connections, heartbeat }, gate),
      routeEndpoint(channelEventsRoute(runtime), gate, { hide: runtime.hideSecrets }),
    ],
    closeAll(reason) {
      closing.abort()
      connections.endAll(reason)
    },
  }
}
