/** All checks of a crash run of procedures. They are pure: they read only the recorded events and a view of the store. */
import type { Violation } from '../history.ts'
import { checkDecisions } from './check-decisions.ts'
import { checkEvents } from './check-events.ts'
import { checkRuns } from './check-runs.ts'
import { checkSteps } from './check-steps.ts'
import { checkSubscriber } from './check-subscriber.ts'
import type { SopsHistory, SopsView } from './history.ts'

/** Returns the violations of all rules, or an empty list. */
export const checkSops = (history: SopsHistory, view: SopsView): Violation[] =>
  [checkEvents, checkSteps, checkRuns, checkDecisions, checkSubscriber].flatMap((check) => check(history, view))
