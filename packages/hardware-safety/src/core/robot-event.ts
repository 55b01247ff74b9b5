/** What the decision core is told, and what it answers. */

/** A part of a sensor's sight: nothing nearer than `distance` metres within `spread` radians of `bearing`. */
export interface Beam {
  readonly bearing: number
  readonly spread: number
  /** `Infinity`: nothing within its range. */
  readonly distance: number
}

/** Metres a second ahead and to the left, radians a second to the left. */
export interface Velocity {
  readonly x: number
  readonly y: number
  readonly turn: number
}

export interface MoveRequest {
  readonly id: number
  /** At full speed it would be this; none of it is more than the limits allow. */
  readonly velocity: Velocity
  /** Metres of way or, where it only turns, radians; null: until `forMs` is over. */
  readonly amount: number | null
  readonly forMs: number | null
}

/** `atMs` is monotonic; an event of the past counts as one of now. */
export type RobotEvent = { readonly atMs: number } & (
  | { readonly kind: 'tick' }
  /** `takenMs`: when it was measured. */
  | { readonly kind: 'range'; readonly sensor: string; readonly takenMs: number; readonly beams: readonly Beam[] }
  | { readonly kind: 'bump'; readonly sensor: string; readonly isPressed: boolean }
  | { readonly kind: 'estop'; readonly isPressed: boolean }
  /** A sensor, or the motors, that do not work: for good. */
  | { readonly kind: 'fault'; readonly what: string }
  | { readonly kind: 'move'; readonly move: MoveRequest }
  | { readonly kind: 'stop'; readonly why: string }
  | { readonly kind: 'reset' }
)

/** Why a movement ended; `done`: by itself. */
export type EndReason = 'done' | 'refused' | 'stopped' | 'estop' | 'fault' | 'bump' | 'sensors' | 'obstacle' | 'watchdog'

export interface MoveEnd {
  readonly id: number
  readonly reason: EndReason
  /** A sentence's end: `stopped by …`; empty for `done`. */
  readonly why: string
  /** Reckoned from what the motors were told: metres or, where it only turned, radians. */
  readonly moved: number
  readonly tookMs: number
  /** Metres backed off after a bump. */
  readonly reversed: number
}

export type RobotCommand =
  /** The motors end by themselves when `forMs` is over. */
  | { readonly kind: 'run'; readonly velocity: Velocity; readonly forMs: number }
  | { readonly kind: 'halt' }
  | { readonly kind: 'began'; readonly id: number; readonly amount: number; readonly shortened: string | null }
  | { readonly kind: 'ended'; readonly end: MoveEnd }
  | { readonly kind: 'latched'; readonly why: string }
  | { readonly kind: 'bumped'; readonly sensor: string }
  | { readonly kind: 'released' }
