/** Withdraws approvals that an earlier owner of these shards asked for and whose turn or run is gone: nothing waits for the answer. */

import { unfinishedApprovals } from '@sluice/approvals'
import type { Approval, OwnedStore, Store } from '@sluice/sdk'
import type { OpenRuntime } from './runtime/open-runtime.ts'

export async function withdrawOrphanedApprovals(
  { store, approvals }: Pick<OpenRuntime, 'store' | 'approvals'>,
  owned: Pick<OwnedStore, 'approvals'>,
  ownedSinceMs: number,
): Promise<void> {
  for await (const approval of unfinishedApprovals(owned.approvals)) {
    // A turn that began in this process may not be in the store.
    if (approval.state !== 'pending' || approval.gate === 'event' || approval.createdAtMs >= ownedSinceMs) continue
    if (!(await isWaitedFor(store, approval))) await approvals.decide(approval, { state: 'cancelled', by: 'system' })
  }
}

/** True while a run of a procedure, or a turn that outlives the process, waits for the decision. */
async function isWaitedFor(store: Store, { gate, runId }: Approval): Promise<boolean> {
  const run = await store.sops.get(runId)
  if (run && run.endedAtMs === null) return true
  if (gate !== 'tool') return false
  if ((await store.turns.get(runId))?.endedAtMs === null) return true
  // Another node runs the turn for one of its clients.
  return (await store.cluster?.turns.isRunning(runId)) === true
}
