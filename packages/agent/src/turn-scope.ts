/** What everything that works on one turn shares: the turn, the settings it began with, and how far it has come. */

import type { AgentConfig, CostConfig } from '@sluice/config'
import type { Permit } from '@sluice/kit'
import type { ModelMessage, Policy, Trace, Usage } from '@sluice/sdk'
import type { WhileAsking } from './call-scope.ts'
import type { Cancellation } from './cancellation.ts'
import type { Registry } from './registry.ts'
import type { TurnPart, TurnRequest } from './turn.ts'

/** A turn from the moment it is asked for to its end. */
export interface LiveTurn extends Omit<TurnRequest, 'signal' | 'superseded' | 'listen' | 'permit'> {
  readonly id: string
  /** `asking`: it waits for a person. `ending`: its work is done and its end is being kept; too late to abort it. */
  phase: 'waiting' | 'running' | 'asking' | 'ending'
  /** As in `ToolContext.superseded`: from the caller and, once it runs, from its lane. */
  superseded: AbortSignal | undefined
  readonly createdAtMs: number
  /** Kept by the store until it ends; settles when the store has it. `undefined`: the turn lives with its caller. */
  readonly kept: Promise<void> | undefined
  /** The permit of the job it runs in; undefined until it starts. */
  permit: Permit | undefined
  /** What an earlier run of it had produced when it was cut; empty: nothing. */
  readonly checkpoint: readonly ModelMessage[]
  readonly cancellation: Cancellation
  /** Hears the turn; never throws. */
  readonly tell: ((part: TurnPart) => void) | undefined
}

export interface TurnScope {
  readonly turn: LiveTurn
  readonly registry: Registry
  readonly agent: AgentConfig
  readonly cost: CostConfig
  /** The policy in force now: it counts when a call runs, not when its turn began. */
  readonly policy: () => Policy
  /** The turn's own span. */
  readonly trace: Trace
  /** Milliseconds since 1970, and on the monotonic clock. */
  readonly startMs: number
  readonly startedAtMs: number
  readonly progress: Progress
  readonly whileAsking: WhileAsking
}

export interface Progress {
  /** How often the turn has been started, this time included. */
  attempts: number
  /** The entry of the model chain that answered last; a turn that had to fall back does not go back. */
  entry: number
  /** The model that answered last. */
  model: string | null
  /** Model calls answered so far. */
  iterations: number
  usage: Usage
}
