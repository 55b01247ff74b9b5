/** Withdraws what the last run of the daemon asked people about turns and runs that are gone: nobody is left to take an answer. */

import { unsettled } from '@sluice/approvals'
import type { OpenRuntime } from '@sluice/runtime'
import type { Approval } from '@sluice/sdk'

type Deps = Pick<OpenRuntime, 'store' | 'approvals' | 'startedAtMs'>

export async function withdrawQuestions({ store, approvals, startedAtMs }: Deps): Promise<void> {
  for await (const question of unsettled(store.approvals)) {
    // Turns of this run of the daemon may live in memory alone.
    if (question.state !== 'pending' || question.gate === 'event' || question.createdAtMs >= startedAtMs) continue
    if (!(await isWaitedFor(store, question))) await approvals.decide(question, { state: 'cancelled', by: 'system' })
  }
}

/** True while a run of a procedure, or a turn that outlives the process, is to take the answer. */
async function isWaitedFor(store: Deps['store'], { gate, runId }: Approval): Promise<boolean> {
  const run = await store.sops.get(runId)
  if (run && run.endedAtMs === null) return true
  return gate === 'tool' && (await store.turns.get(runId))?.endedAtMs === null
}
