/** A registry with a store and without channels, for approvals over sockets and the API. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EventBus } from '@sluice/runtime'
import type { Clock, Logger, Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { ApprovalRegistry } from '../registry.ts'

export interface TestApprovals {
  readonly approvals: ApprovalRegistry
  readonly store: Store
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
  const store = openStore({ file: join(folder, 'sluice.db'), clock: deps.clock, log: deps.log })
  const none = (): readonly never[] => []
  const approvals = new ApprovalRegistry({
    ...deps,
    store: store.approvals,
    inbox: store.inbox,
    channels: none,
    features: none,
    targets: none,
    queued: () => {},
  })
  return {
    approvals,
    store,
    async close() {
      await approvals.stop()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
