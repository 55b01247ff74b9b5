/** Ends questions about tool calls that reach no one, such as one to a person who has blocked the bot: their turns would wait until the question expires. */
import type { Approval, ApprovalKey, ApprovalStore, NewDecision, OutboxStore } from '@sluice/sdk'
import { promptGroups } from './prompts.ts'

/** The feedback of a question that reached no one. */
export const UNREACHED = 'unreached'

export interface Reach {
  readonly outbox: Pick<OutboxStore, 'get' | 'sentAs'>
  /** Whether an operator could answer on the dashboard. */
  hasOperator(): Promise<boolean>
}

export interface UnreachedOptions {
  readonly store: Pick<ApprovalStore, 'get'>
  /** Absent: no question is ended. */
  readonly reach?: Reach
  decide(key: ApprovalKey, decision: NewDecision): Promise<unknown>
}

/** Withdraws the question if each of its prompts is a dead letter and no operator can answer on the dashboard. */
export async function endUnreached({ store, reach, decide }: UnreachedOptions, key: ApprovalKey): Promise<void> {
  if (!reach) return
  const approval = await store.get(key)
  if (approval?.state === 'pending' && approval.gate === 'tool' && (await isUnreached(reach, approval)))
    await decide(key, { state: 'cancelled', by: 'system', feedback: UNREACHED })
}

async function isUnreached({ outbox, hasOperator }: Reach, approval: Approval): Promise<boolean> {
  const groups = promptGroups(approval)
  for (const group of groups) {
    const rows = await Promise.all(group.map(({ number }) => outbox.get(number)))
    if (!rows.some((row) => row?.state === 'dead')) return false
  }
  return groups.length > 0 && !(await hasOperator())
}
