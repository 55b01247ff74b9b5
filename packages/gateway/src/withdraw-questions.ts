/** Withdraws what people were asked about runs that ended while nobody could: cancelled with no daemon there, or right before a crash. */
import { unsettled } from './approvals/unsettled.ts'
import type { OpenRuntime } from './open-runtime.ts'

export async function withdrawQuestions({ store, approvals }: Pick<OpenRuntime, 'store' | 'approvals'>): Promise<void> {
  for await (const question of unsettled(store.approvals)) {
    if (question.gate !== 'sop' || question.state !== 'pending') continue
    const run = await store.sops.get(question.runId)
    if (!run || run.endedAtMs !== null) await approvals.decide(question, { state: 'cancelled', by: 'system' })
  }
}
