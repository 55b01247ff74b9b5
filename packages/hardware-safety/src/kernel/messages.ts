/** The messages between the daemon and the safety process. */
import type { MoveEnd, MoveRequest } from '../core/robot-event.ts'
import type { RobotConfig } from '../robot-toml.ts'
import type { SimScript } from '../sim/sim-body.ts'

/** The first message of the daemon. */
export interface KernelInit {
  readonly config: RobotConfig
  /** Why the robot must not move until a person resets it, or null when it may. */
  readonly latched: string | null
  /** Additional behaviour of the simulator. */
  readonly script?: SimScript
}

/** A message from the daemon. */
export type KernelRequest =
  | { readonly kind: 'move'; readonly move: MoveRequest }
  | { readonly kind: 'stop'; readonly id: number; readonly why: string; readonly latches?: true }
  | { readonly kind: 'look'; readonly id: number }
  | { readonly kind: 'reset'; readonly id: number }

/** A message from the safety process. */
export type KernelMessage =
  | { readonly kind: 'ready' }
  /** The safety process cannot work, and ends. */
  | { readonly kind: 'failed'; readonly why: string }
  /** A part of the robot failed and the process ends. A new process may find the part working again. */
  | { readonly kind: 'faulted'; readonly why: string }
  | { readonly kind: 'began'; readonly id: number; readonly shortened: string | null }
  | { readonly kind: 'ended'; readonly end: MoveEnd }
  /** The motors have the command to halt. */
  | { readonly kind: 'stopped'; readonly id: number }
  | { readonly kind: 'seen'; readonly id: number; readonly view: View }
  | { readonly kind: 'latched'; readonly why: string }
  | { readonly kind: 'bumped'; readonly sensor: string }
  | { readonly kind: 'released' }

/** The readings of the sensors and the condition of the robot. */
export interface View {
  readonly isEstopPressed: boolean
  readonly latched: string | null
  readonly fault: string | null
  /** The bump sensors that are pressed. */
  readonly pressed: readonly string[]
  readonly isMoving: boolean
  /** `distance` is in metres, and `Infinity` when nothing is there. */
  readonly ways: readonly { readonly way: string; readonly distance: number; readonly sight: 'seen' | 'unseen' | 'blind' }[]
  readonly sensors: readonly { readonly name: string; readonly ageMs: number | null }[]
}
