/** What all nodes of a cluster share besides their work. */
import type { EventLog } from './event-log.ts'
import type { OneTimeKeysOf } from './one-time-keys.ts'
import type { SharedConfig } from './shared-config.ts'

export interface SharedState {
  readonly events: EventLog
  readonly config: SharedConfig
  readonly oneTimeKeys: OneTimeKeysOf
}
