/** Withdraws approvals that the last run of the daemon asked for and whose turn or run is gone: nothing waits for the answer. */

import { unfinishedApprovals } from '@sluice/approvals'
import type { OpenRuntime } from '@sluice/runtime'
import type { Approval, Store } from '@sluice/sdk'

export async function withdrawOrphanedApprovals({
  store,
  ownership,
  approvals,
  startedAtMs,
}: Pick<OpenRuntime, 'store' | 'ownership' | 'approvals' | 'startedAtMs'>): Promise<void> {
  for (const owned of ownership.held()) {
    for await (const approval of unfinishedApprovals(owned.approvals)) {
      // A turn that began in this run of the daemon may not be in the store.
      if (approval.state !== 'pending' || approval.gate === 'event' || approval.createdAtMs >= startedAtMs) continue
      if (!(await isWaitedFor(store, approval))) await approvals.decide(approval, { state: 'cancelled', by: 'system' })
    }
  }
}

/** True while a run of a procedure, or a turn that outlives the process, waits for the decision. */
async function isWaitedFor(store: Store, { gate, runId }: Approval): Promise<boolean> {
  const run = await store.sops.get(runId)
  if (run && run.endedAtMs === null) return true
  return gate === 'tool' && (await store.turns.get(runId))?.endedAtMs === null
}
