/** One standard operating procedure as it is loaded from its folder: `SOP.toml` and `SOP.md` (§2.4, §4.3). */
import type { SopMode, SopPriority, SopStep } from '@sluice/sdk'

export type SopTrigger =
  | { readonly type: 'manual' }
  | { readonly type: 'webhook'; readonly path: string; readonly condition: string | null }
  | { readonly type: 'cron'; readonly expression: string; readonly timezone: string }
  | { readonly type: 'mqtt'; readonly topic: string; readonly condition: string | null }
  | { readonly type: 'peripheral'; readonly board: string; readonly signal: string; readonly condition: string | null }

export interface SopDefinition {
  /** Its identity, unique over all that are loaded. */
  readonly name: string
  readonly description: string
  readonly version: string
  readonly priority: SopPriority
  readonly mode: SopMode
  readonly cooldownSecs: number
  readonly maxConcurrent: number
  readonly triggers: readonly SopTrigger[]
  /** At least one. */
  readonly steps: readonly SopStep[]
  /** Absolute. */
  readonly folder: string
}

/** Something wrong with one file; line and column from 1. */
export interface SopProblem {
  readonly file: string
  readonly line?: number
  readonly column?: number
  readonly message: string
  /** A warning keeps nothing from running. */
  readonly severity: 'error' | 'warning'
}
