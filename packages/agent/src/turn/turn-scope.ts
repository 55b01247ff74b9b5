/** The state of a running turn: the turn, the settings it began with, and its progress. */

import type { AgentConfig, CostConfig, TurnLimits } from '@sluice/config'
import type { Attempt, Permit } from '@sluice/kit'
import type { ModelMessage, Trace, TurnStep, Usage } from '@sluice/sdk'
import type { FilePart } from '../history/attached-files.ts'
import type { Registry } from '../model/registry.ts'
import type { LimitedClient } from './admission.ts'
import type { AgentLimits } from './agent-settings.ts'
import type { Cancellation } from './cancellation.ts'
import type { TurnPart, TurnRequest } from './turn.ts'
import type { TurnHome } from './turn-home.ts'

/** A turn from its request to its end. */
export interface LiveTurn extends Omit<TurnRequest, 'agent' | 'limited' | 'text' | 'signal' | 'superseded' | 'listen' | 'permit'> {
  readonly id: string
  /** The principal with the person and the standing of its linked accounts. */
  limited?: LimitedClient
  /** The principal as the caller gave it, which the store keeps: its links may end before the turn begins. */
  readonly principal: LimitedClient | undefined
  text: string
  /** True while the turn waits without its text, which only the store has. */
  isTextInStore: boolean
  /** For a direct turn, the home under the lease of its session once it holds that. */
  home: TurnHome
  /** True in a cluster for a turn that runs on the node that was asked, under the lease of its session. */
  readonly isDirect: boolean
  /** The agent whose turn it is. */
  readonly agent: string
  /** `asking`: the turn waits for a person. `ending`: its end is being stored, and it can no longer be aborted. */
  phase: 'waiting' | 'running' | 'asking' | 'ending'
  /** The signal of `ToolContext.superseded` from the caller, or from the caller and the lane. */
  superseded: AbortSignal | undefined
  /** The place of the running turn in its lane, whose signal becomes `ToolContext.superseded` without another one. */
  inLane: Pick<Attempt, 'superseded'> | undefined
  readonly createdAtMs: number
  /** Settles when the store has the turn; undefined for a turn that is not stored, or not yet. */
  kept: Promise<void> | undefined
  /** Stores the turn, once, and resolves when it is durable; set while the turn may begin before it is stored. Undefined for a turn that needs no storing any more. */
  keep: (() => Promise<void>) | undefined
  /** The number of its starts with this one, which is counted in the commit that stores the turn; undefined for another start. */
  started: Promise<number> | undefined
  /** The permit of its job; undefined until the turn starts. */
  permit: Permit | undefined
  /** Undefined until the turn starts. */
  progress: Progress | undefined
  /** The checkpoint of an interrupted run; empty without one. */
  readonly checkpoint: readonly ModelMessage[]
  readonly cancellation: Cancellation
  /** Passes parts of the turn to the listener. Never throws. */
  readonly tell: ((part: TurnPart) => void) | undefined
}

/** Runs `ask` and releases shared resources until it has settled. Rejects as `ask` does, or when the turn ends. */
export type WhileAsking = <T>(ask: () => Promise<T>) => Promise<T>

export interface TurnScope {
  readonly turn: LiveTurn
  readonly registry: Registry
  readonly agent: AgentConfig
  readonly cost: CostConfig
  readonly turnLimits: TurnLimits
  /** Returns the limits in force now, which apply when a call runs; undefined once the agent was removed from the configuration. */
  readonly limits: () => AgentLimits | undefined
  /** The span of the turn. */
  readonly trace: Trace
  /** The start in milliseconds since 1970, and by the monotonic clock. */
  readonly startMs: number
  readonly startedAtMs: number
  readonly progress: Progress
  readonly whileAsking: WhileAsking
  /** Reports progress: the time of the next step begins now. */
  readonly alive: () => void
  /** Stops the time of the step until the returned function restarts it, once. A model call has a limit of its own. */
  readonly pauseStep: () => () => void
  /** Returns the time in milliseconds that the turn has left. */
  readonly leftMs: () => number
}

export interface Progress {
  /** The number of starts, with this one. */
  attempts: number
  /** The current entry of the model chain. A turn that fell back stays with the fallback. */
  entry: number
  /** The files that were read in this turn for the model, by path; undefined for one that could not be read. */
  readonly files: Map<string, FilePart | undefined>
  /** The estimated tokens to which the conversation was shortened after the model of an entry refused its length. */
  shortened?: { readonly entry: number; readonly tokens: number; readonly isCut: boolean }
  /** The estimated tokens of the system prompt and of the described tools. */
  fixedTokens: number
  /** The tokens that the provider counts for one estimated token. */
  tokenRatio: number
  /** The model that answered last, or the first one whose answer was interrupted. */
  model: string | null
  /** The number of answered model calls. */
  iterations: number
  /** The tokens that `max_turn_tokens` limits. */
  turnTokens: number
  usage: Usage
  /** The model calls and tool calls since this start. */
  readonly steps: TurnStep[]
}
