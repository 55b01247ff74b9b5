/** Everything the decision core knows. */
import type { Beam, MoveEnd, MoveRequest, Velocity } from './robot-event.ts'
import type { RobotLimits } from './robot-limits.ts'

export interface Sight {
  readonly takenMs: number
  /** Metres the robot may have gone, at most, when it was taken: what it has gone since brings obstacles nearer. */
  readonly odometer: number
  /** Radians the robot may have turned, to whichever side, at most, when it was taken: what it has turned since moves obstacles aside. */
  readonly turned: number
  readonly beams: readonly Beam[]
}

export interface Move {
  readonly request: MoveRequest
  /** `checking`: it waits for what the sensors see now; `retreating`: off what was bumped into. */
  readonly phase: 'checking' | 'moving' | 'retreating'
  /** Where it goes, seen from the robot; null: it only turns. */
  readonly heading: number | null
  /** What of `request.amount` it may do. */
  readonly allowed: number
  /** Why that is less than was asked for. */
  readonly shortened: string | null
  readonly progress: number
  readonly askedAtMs: number
  /** Of its phase. */
  readonly sinceMs: number
  /** Of a retreat: what is told once it is over. */
  readonly end: MoveEnd | null
  /** Of a retreat: what it backs off from. */
  readonly from: readonly string[]
}

/** A command to the motors lasts no longer: without a new one they end. */
export const COMMAND_MS_MAX = 200

/** What the motors do until `untilMs` unless they are told otherwise. */
export interface Running {
  readonly velocity: Velocity
  readonly untilMs: number
}

export interface RobotState {
  readonly limits: RobotLimits
  readonly nowMs: number
  readonly sights: Readonly<Record<string, Sight>>
  readonly pressed: readonly string[]
  /** After a bump nothing moves until then. */
  readonly bumpedUntilMs: number
  readonly isEstopPressed: boolean
  /** Why nothing moves until a person says so. */
  readonly latched: string | null
  readonly fault: string | null
  readonly move: Move | null
  readonly running: Running | null
  /** Metres gone so far, by what the motors were told. */
  readonly odometer: number
  /** Radians turned so far, to whichever side. */
  readonly turned: number
}

/** Nothing is known yet. `latched`: what an earlier run was stopped by. */
export const initialState = (limits: RobotLimits, nowMs: number, latched: string | null = null): RobotState => ({
  limits,
  nowMs,
  sights: {},
  pressed: [],
  bumpedUntilMs: Number.NEGATIVE_INFINITY,
  isEstopPressed: false,
  latched,
  fault: null,
  move: null,
  running: null,
  odometer: 0,
  turned: 0,
})
