/** Says who may decide a question (docs/approvals.md#who-may-decide). Every way to answer asks here. */
import { type Answerer, type Approval, isAtLeast } from '@sluice/sdk'

export type Decided = Pick<Approval, 'decider' | 'standing' | 'sources'>

/** Whether a person may decide the question. The standing of a person is that of the moment of the answer. */
export function mayDecide({ decider, standing: floor, sources }: Decided, { standing, isAsked, source }: Answerer): boolean {
  if (source !== undefined && sources.includes(source)) return false
  if (standing === 'operator') return true
  if (decider === 'operator' || !isAsked || !isAtLeast(standing, 'listed')) return false
  return floor === null || isAtLeast(standing, floor)
}

/** Whether a stored question was put to a person who may decide the call as it is judged now. */
export const stillAsks = ({ decider, byStanding }: Pick<Approval, 'decider' | 'byStanding'>, now: Approval['decider']): boolean =>
  now !== 'operator' || decider === 'operator' || byStanding === 'operator'
