/** One daemon as its outer parts see it: the parts that live as long as it does, and the snapshot of features in force. */
import type { Agent } from '@sluice/agent'
import type { ApprovalRegistry } from '@sluice/approvals'
import type { DeliveryQueues } from '@sluice/delivery'
import type { Clock, Logger, Sops, Store, Vitals } from '@sluice/sdk'
import type { EventBus } from './events/event-bus.ts'
import type { Snapshot } from './features/snapshot.ts'
import type { HealthWatch } from './health.ts'
import type { HideSecrets } from './hide-secrets.ts'

/** One daemon, for its whole life. */
export interface Runtime {
  readonly version: string
  readonly profile: string
  readonly startedAtMs: number
  readonly store: Store
  readonly agent: Agent
  readonly bus: EventBus
  readonly clock: Clock
  readonly log: Logger
  /** Masks the configured secrets in what is answered. */
  readonly hideSecrets: HideSecrets
  /** The snapshot in force. A turn keeps the one it began with; see `Agent`. */
  snapshot(): Snapshot
  /**
   * Calls `listener` with each new snapshot, right after it came into force. Listeners are called in the order of their
   * subscription; one that throws is logged and does not stop the others. Returns an unsubscribe function.
   */
  onSnapshot(listener: (snapshot: Snapshot) => void): () => void
  vitals(): Vitals
  readonly health: HealthWatch
  /** The engine of procedures; undefined until it has started. */
  sops(): Sops | undefined
  readonly approvals: ApprovalRegistry
  /** The delivery queues; where there are none, nothing waits and nobody is woken. */
  readonly delivery: DeliveryQueues
}
