/** The interface of a scenario: a single crash or overload, played to its end. */
import type { Violation } from '../history.ts'
import type { RunOptions } from '../stage.ts'

export interface Played {
  /** Measurements by name. */
  readonly numbers: Readonly<Record<string, number>>
  readonly violations: readonly Violation[]
}

export type Scenario = (options: RunOptions) => Promise<Played>

/** A list with the violation, or an empty list if the condition holds. */
export const unless = (holds: boolean, rule: string, detail: string): Violation[] => (holds ? [] : [{ rule, detail }])
