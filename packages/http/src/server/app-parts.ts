/** The parts that the routes are made from. */
import type { Clients, Deliveries } from '@sluice/delivery'
import type { Runtime, Snapshot } from '@sluice/runtime'
import type { Auth } from '../auth/auth.ts'
import type { ConnectedPeers, ForwardingWatch } from '../middleware/client-peer.ts'
import type { Limits } from '../middleware/rate-limit.ts'
import type { BodyBudget } from '../request/body-budget.ts'
import type { Endpoint } from '../request/context.ts'
import type { ProcessControl } from './process-control.ts'

/** The parts of the HTTP side that live as long as the daemon. */
export interface DaemonParts {
  readonly runtime: Runtime
  readonly auth: Auth
  /** Mints the client id of each connection and device. */
  readonly clients: Clients
  readonly limits: Limits
  readonly budget: BodyBudget
  readonly forwarding: ForwardingWatch
  /** Takes the messages of channels; without it, no channel is served. */
  readonly intake?: Intake
  /** Returns the address that clients use; null or absent where nothing listens. */
  readonly url?: () => string | null
  /** Acts on the process of the daemon; absent in the process of a command. */
  readonly processControl?: ProcessControl
  /** The routes that stay open: server-sent events and WebSockets. */
  readonly streams?: (parts: AppParts) => readonly Endpoint[]
}

/** The parts that the application of one snapshot is made from. */
export interface AppParts extends DaemonParts {
  readonly snapshot: Snapshot
  readonly peers: ConnectedPeers
}

/** Where the messages of channels go. */
export interface Intake {
  /** Resolves once the messages are durable. */
  readonly receive: Deliveries['receive']
  /** Resolves once the reports are durable. */
  readonly report: Deliveries['report']
  /** True if other machines may reach this address: unsigned webhooks are then served only if `[gateway]` allows them. */
  readonly refusesUnsigned: () => boolean
}
