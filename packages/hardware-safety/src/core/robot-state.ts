/** Everything the decision core knows: the limits of the robot, which never change, and the state after the last event. */
import type { Beam, MoveEnd, MoveRequest, RobotCommand, Velocity } from './robot-event.ts'

export interface RangeSensor {
  readonly name: string
  /** The direction in which the sensor looks, in radians to the left of straight ahead. */
  readonly bearing: number
  /** Half the angle of its field of view, in radians. */
  readonly halfAngle: number
}

/** In metres, metres per second, radians per second and milliseconds. */
export interface RobotLimits {
  /** Metres per second at speed 1. */
  readonly maxSpeed: number
  /** Radians per second at speed 1. */
  readonly maxRotation: number
  /** The width of the robot. An obstacle farther to the side than half of it is not in the way. */
  readonly width: number
  readonly minDistance: number
  /** The robot drives slowly below this multiple of `minDistance`. */
  readonly slowZone: number
  readonly approachSpeed: number
  /** The speed in a direction that no sensor covers; 0 forbids to move there. */
  readonly blindSpeed: number
  readonly driveMsMax: number
  readonly sensorMsMax: number
  readonly bumpReverse: number
  readonly sensors: readonly RangeSensor[]
}

/** The last measurement of a range sensor. */
export interface Reading {
  readonly takenMs: number
  /** The least the odometer can have shown when the reading was taken. Metres driven since then bring obstacles nearer. */
  readonly odometer: number
  /** The least `turned` can have been when the reading was taken. Radians turned since then move obstacles sideways. */
  readonly turned: number
  readonly beams: readonly Beam[]
}

export interface Move {
  readonly request: MoveRequest
  /** `checking` waits for fresh readings; `retreating` backs off after a bump. */
  readonly phase: 'checking' | 'moving' | 'retreating'
  /** The direction of travel, seen from the robot; null while it turns on the spot. */
  readonly heading: number | null
  /** The part of `request.amount` that is free of obstacles. */
  readonly allowed: number
  /** Why `allowed` is less than `request.amount`, or null when it is not. */
  readonly shortened: string | null
  readonly progress: number
  readonly askedAtMs: number
  /** When the current phase began. */
  readonly sinceMs: number
  /** While retreating, the end to report once the retreat is over. */
  readonly end: MoveEnd | null
  /** While retreating, the bump sensors that were pressed when it began. */
  readonly from: readonly string[]
}

/** The longest command to the motors. They stop unless a new one follows. */
export const COMMAND_MS_MAX = 200

/** The command that the motors carry out until `untilMs`. */
export interface Running {
  readonly velocity: Velocity
  readonly untilMs: number
}

export interface RobotState {
  readonly limits: RobotLimits
  readonly nowMs: number
  /** The last reading of each range sensor by its name. */
  readonly readings: Readonly<Record<string, Reading>>
  /** The bump sensors that are pressed. */
  readonly pressed: readonly string[]
  /** The time until which a bump forbids every movement. */
  readonly bumpedUntilMs: number
  readonly isEstopPressed: boolean
  /** Why nothing moves until a person resets the robot. */
  readonly latched: string | null
  readonly fault: string | null
  readonly move: Move | null
  readonly running: Running | null
  /** Metres driven so far, computed from the commands to the motors. */
  readonly odometer: number
  /** Radians turned so far, in either direction. */
  readonly turned: number
}

/** The state before any reading. `latched` is the reason that an earlier run left in force. */
export const initialState = (limits: RobotLimits, nowMs: number, latched: string | null = null): RobotState => ({
  limits,
  nowMs,
  readings: {},
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

/** When the sensor was last read; `-Infinity` before its first reading. */
export const takenMsOf = ({ readings }: RobotState, sensor: string): number => readings[sensor]?.takenMs ?? Number.NEGATIVE_INFINITY

/** The result of an event: the next state and the commands to the robot. */
export interface Decision {
  readonly state: RobotState
  readonly commands: readonly RobotCommand[]
}
