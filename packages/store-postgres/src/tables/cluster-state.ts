/** The state that all nodes of a cluster share besides their work: limits, one-time keys, events and the configuration. */
import type { Clock, Counters, Logger, SharedState } from '@sluice/sdk'
import type { Leases } from '../cluster/leases.ts'
import type { Notices } from '../cluster/notices.ts'
import type { ConnectionSettings } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { sharedCounters } from './counters.ts'
import { PostgresEventLog } from './event-log.ts'
import { sharedOneTimeKeys } from './one-time-keys.ts'
import { createSharedConfig } from './shared-config.ts'

export interface SharedStateOptions {
  readonly settings: ConnectionSettings
  readonly process: string
  readonly db: Database
  readonly leases: Leases
  readonly notices: Notices
  readonly clock: Clock
  readonly log: Logger
}

export interface OpenSharedState {
  readonly state: SharedState
  readonly counters: Counters
  close(): Promise<void>
}

export function createSharedState(options: SharedStateOptions): OpenSharedState {
  const { db } = options
  const events = new PostgresEventLog(options)
  const state = { events, config: createSharedConfig(options), oneTimeKeys: sharedOneTimeKeys(db) }
  return { state, counters: sharedCounters(db), close: () => events.close() }
}
