/** All checks of a crash run. They are pure: they read only the recorded events and a view of the store. */
import { checkGates } from './check-gates.ts'
import { checkKept } from './check-kept.ts'
import { checkOrder } from './check-order.ts'
import { checkReplies } from './check-replies.ts'
import { checkRuns } from './check-runs.ts'
import type { History, StoreView, Violation } from './history.ts'

/** Returns the violations of all rules, or an empty list. */
export const checkHistory = (history: History, store: StoreView): Violation[] => [
  ...checkKept(history, store),
  ...checkRuns(history),
  ...checkGates(history, store),
  ...checkReplies(history, store),
  ...checkOrder(history, store),
]
