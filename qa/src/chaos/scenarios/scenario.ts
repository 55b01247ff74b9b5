/** A single crash or overload, played to its end. */
import type { Violation } from '../history.ts'
import type { StageOptions } from '../stage.ts'

export type ScenarioOptions = Pick<StageOptions, 'profile' | 'seed' | 'dir' | 'signal'>

export interface Played {
  /** What was measured, by name. */
  readonly numbers: Readonly<Record<string, number>>
  readonly violations: readonly Violation[]
}

export type Scenario = (options: ScenarioOptions) => Promise<Played>

/** The violation, unless all is as it should be. */
export const unless = (isRight: boolean, rule: string, detail: string): Violation[] => (isRight ? [] : [{ rule, detail }])
