/** A registry with a store and without channels, for approvals over sockets and the API. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { People } from '@sluice/delivery'
import { ShardOwnership } from '@sluice/ownership'
import type { EventBus } from '@sluice/runtime'
import type { Clock, Logger, Store } from '@sluice/sdk'
import { openTestStore } from '@sluice/store/testing/test-store'
import { ApprovalRegistry } from '../registry.ts'

export interface TestApprovals {
  readonly approvals: ApprovalRegistry
  readonly store: Store
  readonly ownership: ShardOwnership
  /** Starts the registry of a process that owns everything. */
  start(): Promise<void>
  close(): Promise<void>
}

/** The registry is not started. */
export function openTestApprovals(deps: {
  readonly bus: EventBus
  readonly clock: Clock
  readonly log: Logger
  readonly pendingMax?: number
}): TestApprovals {
  const folder = mkdtempSync(join(tmpdir(), 'approvals-'))
  const store = openTestStore({ file: join(folder, 'sluice.db'), clock: deps.clock, log: deps.log })
  const ownership = new ShardOwnership({ store, clock: deps.clock, log: deps.log })
  const none = (): readonly never[] => []
  const approvals = new ApprovalRegistry({
    ...deps,
    people: new People({ store, ownership, clock: deps.clock, events: deps.bus, channels: none, operators: none }),
    store: store.approvals,
    ownership,
    inbox: store.inbox,
    channels: none,
    features: none,
    targets: none,
    operators: none,
    actorName: async (by) => by,
    queued: () => {},
  })
  return {
    approvals,
    store,
    ownership,
    async start() {
      await ownership.start()
      await approvals.start()
    },
    async close() {
      await approvals.stop()
      await ownership.stop()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
