/** Everything a crash run of procedures is held to. Pure: it looks at what was seen and at what the store held, and at nothing else. */
import type { Violation } from '../history.ts'
import { checkDecisions } from './check-decisions.ts'
import { checkEvents } from './check-events.ts'
import { checkRuns } from './check-runs.ts'
import { checkSteps } from './check-steps.ts'
import { checkTold } from './check-told.ts'
import type { SopsHistory, SopsView } from './history.ts'

/** Empty: all is well. */
export const checkSops = (history: SopsHistory, view: SopsView): Violation[] =>
  [checkEvents, checkSteps, checkRuns, checkDecisions, checkTold].flatMap((check) => check(history, view))
