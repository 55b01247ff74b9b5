/** Everything a crash run is held to. Pure: it looks at what was seen and at what the store held, and at nothing else. */
import { checkGates } from './check-gates.ts'
import { checkKept } from './check-kept.ts'
import { checkOrder } from './check-order.ts'
import { checkReplies } from './check-replies.ts'
import { checkRuns } from './check-runs.ts'
import type { History, StoreView, Violation } from './history.ts'

/** Empty: all is well. */
export const checkHistory = (history: History, store: StoreView): Violation[] => [
  ...checkKept(history, store),
  ...checkRuns(history),
  ...checkGates(history, store),
  ...checkReplies(history, store),
  ...checkOrder(history, store),
]
