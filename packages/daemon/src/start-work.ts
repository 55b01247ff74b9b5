/** Starts everything that works on the stored work of the shards that this process owns. */
import { type Deliveries, startDeliveries } from '@sluice/delivery'
import { startOperatorNotices, tellDueNotices } from '@sluice/runtime'
import type { OwnedStore } from '@sluice/sdk'
import { restoredAtMs } from '@sluice/store'
import { deliveryOptions } from './delivery-options.ts'
import { type Procedures, startProcedures } from './procedures.ts'
import type { OpenRuntime } from './runtime/open-runtime.ts'
import { createStartTurn } from './start-turn.ts'
import { recallSeenClocks } from './watch-clock.ts'

export interface Work {
  readonly procedures: Procedures
  readonly deliveries: Deliveries
}

/** `undo` gets what a failed start has to stop. */
export async function startWork(runtime: OpenRuntime, undo: AsyncDisposableStack): Promise<Work> {
  await recallSeenClocks(runtime)
  await runtime.ownership.start()
  // Approvals start before turns and deliveries: a resumed turn may ask for one, and a waiting reply may answer one.
  await runtime.approvals.start()
  const notify = startOperatorNotices(runtime)
  await resumeTurns(runtime)
  // Procedures start before deliveries: a message may trigger one.
  const procedures = await startProcedures(runtime)
  undo.defer(() => procedures.stop(0))
  const restored = await restoredAtMs(runtime.store)
  const deliveries = await startDeliveries(deliveryOptions(runtime, procedures, restored))
  undo.defer(() => deliveries.stop(0))
  runtime.delivery.start(deliveries)
  void tellDueNotices(runtime)
  runtime.offer({ startTurn: createStartTurn(runtime, deliveries, notify, restored) })
  return { procedures, deliveries }
}

/** Resumes the turns that the earlier owner of these shards left unfinished, before new ones are accepted. */
export async function resumeTurns({ agent, ownership, log }: OpenRuntime): Promise<void> {
  const resume = async (owned: OwnedStore): Promise<void> => {
    const unfinished = await agent.resume(owned)
    if (unfinished > 0) log.info('resuming unfinished turns', { turns: unfinished })
  }
  await ownership.onShards(resume, (owned) => agent.leave(owned))
}
