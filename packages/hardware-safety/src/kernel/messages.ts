/** What the daemon and the safety process tell each other. */
import type { MoveEnd, MoveRequest } from '../core/robot-event.ts'
import type { RobotConfig } from '../robot-toml.ts'
import type { SimScript } from '../sim/sim-body.ts'

export interface KernelInit {
  readonly config: RobotConfig
  /** Why it may not move until a person says so. */
  readonly latched: string | null
  /** Of the simulator: what happens by itself, and where its motors write down what they do. */
  readonly script?: SimScript
}

export type ToKernel =
  | { readonly kind: 'move'; readonly move: MoveRequest }
  | { readonly kind: 'stop'; readonly id: number; readonly why: string }
  | { readonly kind: 'look'; readonly id: number }
  | { readonly kind: 'reset'; readonly id: number }

export type FromKernel =
  | { readonly kind: 'ready' }
  /** It cannot do its work, and ends. */
  | { readonly kind: 'failed'; readonly why: string }
  /** A part of the robot no longer works; it ends, and one that is started anew may find it working. */
  | { readonly kind: 'faulted'; readonly why: string }
  | { readonly kind: 'began'; readonly id: number; readonly shortened: string | null }
  | { readonly kind: 'ended'; readonly end: MoveEnd }
  /** The motors were told to halt. */
  | { readonly kind: 'stopped'; readonly id: number }
  | { readonly kind: 'seen'; readonly id: number; readonly view: View }
  | { readonly kind: 'latched'; readonly why: string }
  | { readonly kind: 'bumped'; readonly sensor: string }
  | { readonly kind: 'released' }

/** What it sees and how it is. */
export interface View {
  readonly isEstopPressed: boolean
  readonly latched: string | null
  readonly fault: string | null
  readonly pressed: readonly string[]
  readonly isMoving: boolean
  /** Metres; `Infinity`: nothing is there. */
  readonly ways: readonly { readonly way: string; readonly distance: number; readonly sight: 'seen' | 'unseen' | 'blind' }[]
  readonly sensors: readonly { readonly name: string; readonly ageMs: number | null }[]
}
