/** All streams of one daemon: who may subscribe, what subscribers are sent, and how the streams end. */

import type { Runtime, Snapshot } from '@sluice/runtime'
import type { Auth } from '../auth.ts'
import type { Endpoint } from '../context.ts'
import type { Access } from '../middleware/authenticate.ts'
import { channelEventsRoute } from '../routes/channel-events.ts'
import { routeEndpoint } from '../routes/route.ts'
import { chatSocketEndpoint } from './chat-socket.ts'
import { createConnections, type SubscriberCounts } from './connections.ts'
import { eventSocketEndpoint } from './event-socket.ts'
import { createFanOut } from './fan-out.ts'
import { socketFraming, sseFraming } from './frames.ts'
import { keepAlive, sseEndpoint } from './sse.ts'
import { createHeartbeat } from './websocket.ts'

/** Made once per daemon: connections outlive a reload. */
export interface Streams {
  /**
   * `GET /api/events`, `/ws/events`, `/ws/chat` and `POST /api/channel-events`. The sockets need a server that was made
   * with `websocket: { server: createSocketServer() }`.
   */
  endpoints(snapshot: Snapshot, access: Access): readonly Endpoint[]
  /** Closes every stream with its reason, sockets with 1001, and admits no more. */
  closeAll(reason: string): void
}

/** Keeps `counts` up to date. */
export function createStreams(runtime: Runtime, auth: Auth, counts: SubscriberCounts): Streams {
  const { bus, clock } = runtime
  const closing = new AbortController()
  const onDropped = () => {
    counts.dropped += 1
  }
  const connections = createConnections(() => runtime.snapshot().gateway.max_subscribers, counts, auth.onRevoked)
  const heartbeat = createHeartbeat(clock, closing.signal)
  const sseFanOut = createFanOut({ bus, clock, framing: sseFraming, onDropped })
  const socketFanOut = createFanOut({ bus, clock, framing: socketFraming, onDropped })
  void keepAlive(sseFanOut, clock, closing.signal)
  runtime.onSnapshot(({ gateway }) => {
    if (gateway.require_pairing) connections.endUnpaired()
  })
  return {
    endpoints: (snapshot, access) => [
      sseEndpoint({ bus, connections, fanOut: sseFanOut }, access),
      eventSocketEndpoint({ bus, connections, heartbeat, fanOut: socketFanOut }, access),
      chatSocketEndpoint({ runtime, connections, heartbeat }, access),
      routeEndpoint(channelEventsRoute(runtime), runtime, snapshot, access),
    ],
    closeAll(reason) {
      closing.abort()
      connections.endAll(reason)
    },
  }
}
