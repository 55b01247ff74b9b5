/** The ports of the safety process: what moves the robot, and what tells it about the world. */
import type { RobotEvent, Velocity } from '../core/robot-event.ts'

export interface Drive {
  /** Ends by itself after `forMs`, whatever becomes of this process. Must not throw. */
  run(velocity: Velocity, forMs: number): void
  /** Goes before all that waits. Resolves once it is with the motors. Must not throw. */
  halt(): Promise<void>
}

/** The whole robot. What its sensors notice, and that a part of it fails, goes to `Hear`. */
export interface Body {
  readonly drive: Drive
  /** Asks all sensors; they answer as soon as they can, or not at all. Must not throw. */
  poll(): void
  /** Idempotent. */
  close(): Promise<void>
}

type Without<Event> = Event extends unknown ? Omit<Event, 'atMs'> : never

export type Noticed = Without<Extract<RobotEvent, { kind: 'range' | 'bump' | 'estop' | 'fault' }>>

export type Hear = (noticed: Noticed) => void
