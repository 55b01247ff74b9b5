/** What a tool call needs to know of where it is made: in a turn, or by a caller outside of any. */
import type { ClientId, Policy, Tool, Trace } from '@sluice/sdk'
import type { Cancellation } from './cancellation.ts'
import type { Registry } from './registry.ts'
import type { Approver, TurnPart } from './turn.ts'
import type { TurnScope } from './turn-scope.ts'

/** Runs `ask`, and holds nothing that others could use until it has settled. Rejects as `ask` does, or with the end of the turn. */
export type WhileAsking = <T>(ask: () => Promise<T>) => Promise<T>

export interface CallScope {
  /** Of the turn, or what stands for one. */
  readonly turn: string
  readonly session: string | null
  readonly inbox: number | null
  readonly client: ClientId
  readonly caller: string | undefined
  /** As in `TurnRequest`: whose events these are. */
  readonly owner: string | undefined
  readonly trace: Trace
  readonly registry: Registry
  /** The policy in force now. */
  readonly policy: () => Policy
  /** The only tools that may be called; undefined: all. */
  readonly tools: readonly string[] | undefined
  readonly resultCharsMax: number
  readonly cancellation: Cancellation
  /** As in `ToolContext`. */
  readonly superseded: AbortSignal | undefined
  /** Asks a person; undefined: the agent's own approver does. */
  readonly approve: Approver | undefined
  readonly whileAsking: WhileAsking
  /** Hears the call; never throws. */
  readonly tell: ((part: TurnPart) => void) | undefined
}

export function callScopeOf({ turn, trace, registry, policy, agent, whileAsking }: TurnScope): CallScope {
  const { id, session, delivery, client, owner, tools, cancellation, superseded, approve, tell, caller = owner } = turn
  const inbox = delivery?.inbox ?? null
  const resultCharsMax = agent.max_tool_result_chars
  const who = { session, inbox, client, caller, owner }
  return { turn: id, ...who, trace, registry, policy, tools, resultCharsMax, cancellation, superseded, approve, whileAsking, tell }
}

/** What of the registry's tools is offered where only some may be called. */
export const offeredTools = (registry: Registry, tools: readonly string[] | undefined): readonly Tool[] =>
  tools ? registry.offered.filter(({ name }) => tools.includes(name)) : registry.offered
