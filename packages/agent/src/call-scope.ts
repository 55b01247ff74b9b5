/** The context of a tool call, in a turn or outside of one. */
import type { ClientId, Policy, Tool, Trace } from '@sluice/sdk'
import type { Cancellation } from './cancellation.ts'
import type { Registry } from './registry.ts'
import type { Approver, TurnPart } from './turn.ts'
import type { TurnScope, WhileAsking } from './turn-scope.ts'

export interface CallScope {
  /** The id of the turn, or the id that replaces it. */
  readonly turn: string
  readonly session: string | null
  readonly inbox: number | null
  readonly client: ClientId
  readonly caller: string | undefined
  /** The owner of the events, as in `TurnRequest`. */
  readonly owner: string | undefined
  readonly trace: Trace
  readonly registry: Registry
  /** The policy in force now. */
  readonly policy: () => Policy
  /** The only tools that may be called; undefined for all. */
  readonly tools: readonly string[] | undefined
  readonly resultCharsMax: number
  readonly cancellation: Cancellation
  /** The signal of `ToolContext.superseded`. */
  readonly superseded: AbortSignal | undefined
  /** Asks a person; the agent's approver is used when undefined. */
  readonly approve: Approver | undefined
  readonly whileAsking: WhileAsking
  /** Passes the call and its result to the listener. Never throws. */
  readonly tell: ((part: TurnPart) => void) | undefined
}

export function callScopeOf({ turn, trace, registry, policy, agent, whileAsking }: TurnScope): CallScope {
  const { id, session, delivery, client, owner, tools, cancellation, superseded, approve, tell, caller = owner } = turn
  const inbox = delivery?.inbox ?? null
  const resultCharsMax = agent.max_tool_result_chars
  const who = { session, inbox, client, caller, owner }
  return { turn: id, ...who, trace, registry, policy, tools, resultCharsMax, cancellation, superseded, approve, whileAsking, tell }
}

/** Returns the offered tools of the registry that the turn may call. */
export const offeredTools = (registry: Registry, tools: readonly string[] | undefined): readonly Tool[] =>
  tools ? registry.offered.filter(({ name }) => tools.includes(name)) : registry.offered
