/** The port over which the processes of one store exchange their events. A process that has the store to itself needs none. */
import type { SluiceEvent } from '@sluice/sdk'

/** An event on its way to another process, without secrets. Each process numbers it anew. */
export interface RelayedEvent {
  readonly event: SluiceEvent
  /** RFC 3339. */
  readonly timestamp: string
  /** The owner and the outline, as in `EventBus.emit`. */
  readonly owner?: string
  readonly outline?: SluiceEvent
}

export interface EventRelay {
  /** Sends an event to the other processes. May lose it; must not throw. */
  publish(event: RelayedEvent): void
  /** Calls `receive` for each event of another process, in the order of that process. Returns an unsubscribe function. */
  subscribe(receive: (event: RelayedEvent) => void): () => void
}
