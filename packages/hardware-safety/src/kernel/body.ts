/** The ports between the safety process and the robot: its motors, and the sensors that report to the kernel. */
import type { BodyEvent, Velocity } from '../core/robot-event.ts'

export interface Drive {
  /** Runs the motors. They stop after `forMs` even when this process is gone. Must not throw. */
  run(velocity: Velocity, forMs: number): void
  /** Stops the motors, ahead of every waiting command. Resolves once the motors have the command. Must not throw. */
  halt(): Promise<void>
}

/** The whole robot. It reports sensor readings and failed parts through the `Report` it was opened with. */
export interface Body {
  readonly drive: Drive
  /** Asks all sensors for readings, which arrive as soon as they can, or not at all. Must not throw. */
  poll(): void
  /** Idempotent. */
  close(): Promise<void>
}

export type Report = (event: BodyEvent) => void
