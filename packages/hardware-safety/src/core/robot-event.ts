/** The events that the decision core takes and the commands that it returns. */

/** One part of a sensor's field of view: nothing within `spread` radians of `bearing` is nearer than `distance` metres. */
export interface Beam {
  readonly bearing: number
  readonly spread: number
  /** `Infinity` when nothing is within range. */
  readonly distance: number
}

/** Metres per second ahead (`x`) and to the left (`y`), and radians per second to the left (`turn`). */
export interface Velocity {
  readonly x: number
  readonly y: number
  readonly turn: number
}

/** A movement as a caller describes it. */
export interface Movement {
  /** The velocity where nothing slows the robot down. The core reduces it to the limits. */
  readonly velocity: Velocity
  /** Metres to go, or radians to turn on the spot; null to move until `forMs` has passed. */
  readonly amount: number | null
  readonly forMs: number | null
}

export interface MoveRequest extends Movement {
  readonly id: number
}

/** An event reported by the robot's sensors or motors. */
export type BodyEvent =
  /** `takenMs` is the time of the measurement. */
  | { readonly kind: 'range'; readonly sensor: string; readonly takenMs: number; readonly beams: readonly Beam[] }
  | { readonly kind: 'bump'; readonly sensor: string; readonly isPressed: boolean }
  | { readonly kind: 'estop'; readonly isPressed: boolean }
  /** A sensor or the motors failed. A fault lasts until the process ends. */
  | { readonly kind: 'fault'; readonly what: string }

export type UntimedEvent =
  | BodyEvent
  | { readonly kind: 'tick' }
  | { readonly kind: 'move'; readonly move: MoveRequest }
  /** `latches`: nothing moves from then on until a person resets the robot. */
  | { readonly kind: 'stop'; readonly why: string; readonly latches?: true }
  | { readonly kind: 'reset' }

/** `atMs` is monotonic time; an event in the past counts as if it happened now. */
export type RobotEvent = { readonly atMs: number } & UntimedEvent

/** Why a movement ended; `done` when it was completed. */
export type EndReason = 'done' | 'refused' | 'stopped' | 'estop' | 'fault' | 'bump' | 'sensors' | 'obstacle' | 'watchdog'

export interface MoveEnd {
  readonly id: number
  readonly reason: EndReason
  /** The cause in lower case, such as "an obstacle is at 0.31 m"; empty for `done`. */
  readonly why: string
  /** Metres driven, or radians turned on the spot, computed from the commands to the motors. */
  readonly moved: number
  readonly tookMs: number
  /** Metres backed off after a bump. */
  readonly reversed: number
}

export type RobotCommand =
  /** The motors stop by themselves after `forMs`. */
  | { readonly kind: 'run'; readonly velocity: Velocity; readonly forMs: number }
  | { readonly kind: 'halt' }
  | { readonly kind: 'began'; readonly id: number; readonly amount: number; readonly shortened: string | null }
  | { readonly kind: 'ended'; readonly end: MoveEnd }
  | { readonly kind: 'latched'; readonly why: string }
  | { readonly kind: 'bumped'; readonly sensor: string }
  | { readonly kind: 'released' }
