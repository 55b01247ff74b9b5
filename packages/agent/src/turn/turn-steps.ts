/** The steps of a turn, kept for its timeline in one commit with its end. */
import type { TurnStep } from '@sluice/sdk'

/** The newest steps are kept, because the reason of a failure is among them. */
export const STEPS_MAX = 200
const ERROR_CHARS_MAX = 300

export function noteStep(steps: TurnStep[], { error, ...step }: TurnStep): void {
  if (steps.length === STEPS_MAX) steps.shift()
  steps.push(error === undefined ? step : { ...step, error: error.slice(0, ERROR_CHARS_MAX).toWellFormed() })
}
