/** All streams of one daemon: who may subscribe, what subscribers are sent, and how the streams end. */

import type { Runtime } from '@sluice/runtime'
import type { Auth } from '../auth/auth.ts'
import type { Endpoint } from '../request/context.ts'
import { channelEventsRoute } from '../routes/channel-events.ts'
import { routeEndpoint } from '../routes/route.ts'
import type { AppParts } from '../server/app-parts.ts'
import { chatSocketEndpoint } from './chat-socket.ts'
import { createConnections, type SubscriberCounts } from './connections.ts'
import { eventSocketEndpoint } from './event-socket.ts'
import { createFanOut } from './fan-out.ts'
import { featureSocketEndpoint } from './feature-socket.ts'
import { socketFraming, sseFraming } from './frames.ts'
import { keepAlive, sseEndpoint } from './sse.ts'
import { createOpenSockets } from './websocket.ts'

/** Made once per daemon: connections outlive a reload. */
export interface Streams {
  /**
   * `GET /api/events`, `/ws/events`, `/ws/chat`, `POST /api/channel-events` and the WebSockets of features. They need a server with
   * `serveUpgrades`.
   */
  endpoints(parts: AppParts): readonly Endpoint[]
  /** Closes every stream with its reason, sockets with 1001, and admits no more. */
  closeAll(reason: string): void
}

/** Keeps `counts` up to date. */
export function createStreams(runtime: Runtime, auth: Auth, counts: SubscriberCounts): Streams {
  const { bus, clock } = runtime
  const closing = new AbortController()
  const onDropped = (events: number) => {
    counts.dropped += events
  }
  const connections = createConnections({
    max: () => runtime.snapshot().gateway.max_subscribers,
    counts,
    shares: runtime.shares,
    onRevoked: auth.onRevoked,
  })
  const open = createOpenSockets({ connections, people: runtime.people }, clock, closing.signal)
  const sseFanOut = createFanOut({ bus, clock, framing: sseFraming, onDropped })
  const socketFanOut = createFanOut({ bus, clock, framing: socketFraming, onDropped })
  void keepAlive(sseFanOut, clock, closing.signal)
  runtime.onSnapshot(({ gateway }) => {
    if (gateway.require_pairing) connections.endUnpaired()
  })
  return {
    endpoints: (parts) => [
      sseEndpoint({ bus, connections, fanOut: sseFanOut }, parts),
      eventSocketEndpoint({ bus, fanOut: socketFanOut, open }, parts),
      chatSocketEndpoint({ runtime, open }, parts),
      routeEndpoint(channelEventsRoute(runtime), parts),
      ...parts.snapshot.sockets.map((route) => featureSocketEndpoint(open, route, parts)),
    ],
    closeAll(reason) {
      closing.abort()
      sseFanOut.flush()
      socketFanOut.flush()
      connections.endAll(reason)
    },
  }
}
