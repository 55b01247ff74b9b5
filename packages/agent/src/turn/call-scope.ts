/** The context of a tool call, in a turn or outside of one. */
import {
  agentKey,
  type ClientId,
  escapedParts,
  type FileCaller,
  fileOwner,
  type Lease,
  resultsKey,
  type Standing,
  sharedRoom,
  type Tool,
  type Trace,
  type TurnStep,
} from '@sluice/sdk'
import type { Registry } from '../model/registry.ts'
import { type ResultLimit, resultTokens } from '../tools/cut-result.ts'
import type { LimitedClient } from './admission.ts'
import type { AgentLimits } from './agent-settings.ts'
import type { Cancellation } from './cancellation.ts'
import type { Approver, TurnPart } from './turn.ts'
import type { TurnScope, WhileAsking } from './turn-scope.ts'
import { standingOfTurn } from './turn-standing.ts'
import { noteStep } from './turn-steps.ts'

/** The limit of a result outside of a turn, which no model reads. */
export const DATA_CHARS_MAX = 50_000

export interface CallScope {
  /** The id of the turn, or the id that replaces it. */
  readonly turn: string
  readonly session: string | null
  readonly inbox: number | null
  /** The lease of the turn; undefined without one, or if the caller asks it in `onBegin`. */
  readonly lease: Lease | undefined
  readonly agent: string
  /** The client and the caller of this agent; as in `ToolContext`. */
  readonly client: ClientId
  readonly caller: string | undefined
  readonly person?: string | undefined
  /** As in `ToolContext`. */
  readonly isInRoom?: boolean | undefined
  /** The client whose share the results count for; absent for none. */
  readonly limited?: LimitedClient | undefined
  /** As in `ToolContext`. */
  readonly standing: Standing
  /** The owner of the events, as in `TurnRequest`. */
  readonly owner: string | undefined
  readonly trace: Trace
  readonly registry: Registry
  /** The limits of the agent in force now; undefined once it was removed from the configuration. */
  readonly limits: () => AgentLimits | undefined
  /** The only tools of this turn; undefined for all that the agent may call. */
  readonly tools: readonly string[] | undefined
  readonly resultLimit: ResultLimit
  /** The limit of errors, and of the results that programs read. */
  readonly dataCharsMax: number
  readonly cancellation: Cancellation
  /** The signal of `ToolContext.superseded`. */
  readonly superseded: AbortSignal | undefined
  /** Returns the sources of untrusted text that the model has read, the newest first. Reads the whole conversation. */
  readonly sources: () => readonly string[]
  /** Tells whether the conversation shows an address to open, as `Tool.address` demands. Reads the whole conversation. */
  readonly shows: (address: string) => boolean
  /** Whether a message of the conversation names an attachment; absent where the calls open all attachments of the caller. */
  readonly namesFile?: ((path: string) => boolean) | undefined
  /** Asks a person; the agent's approver is used when undefined. */
  readonly approve: Approver | undefined
  /** As in `TurnRequest`. */
  readonly asksOwner?: boolean
  readonly whileAsking: WhileAsking
  /** As in `TurnScope`; absent outside of a turn. */
  readonly alive?: TurnScope['alive']
  /** Keeps a call for the timeline of the turn; absent outside of a turn. */
  readonly note?: (step: TurnStep) => void
  /** Passes the call and its result to the listener. Never throws. */
  readonly tell: ((part: TurnPart) => void) | undefined
}

export function callScopeOf(
  { turn, trace, registry, limits, agent: { max_tool_result_chars: chars }, progress, whileAsking, alive }: TurnScope,
  sources: CallScope['sources'],
  shows: CallScope['shows'] = () => false,
  namesFile: (path: string) => boolean = () => false,
): CallScope {
  const { id, home, agent, session, delivery, client, owner, tools, cancellation, approve, asksOwner, tell, caller = owner, limited } = turn
  return {
    turn: id,
    session,
    inbox: delivery?.inbox ?? null,
    lease: home.lease,
    owner,
    ...identityOf(agent, client, caller),
    client: clientIn(turn),
    person: personFor(agent, limited),
    isInRoom: turn.isInRoom,
    limited,
    standing: standingOfTurn(turn),
    trace,
    registry,
    limits,
    tools,
    resultLimit: { tokens: resultTokens(registry.models.window(progress.entry).tokens), chars },
    dataCharsMax: chars ?? DATA_CHARS_MAX,
    cancellation,
    // The lane makes the signal when a tool is the first to ask for it.
    get superseded() {
      return turn.superseded ?? turn.inLane?.superseded
    },
    sources,
    shows,
    // Others read the answer in a room: the calls open only what was sent there, unless the room itself has the files.
    namesFile: turn.isInRoom && !sharedRoom(session) ? namesFile : undefined,
    approve,
    ...(asksOwner && { asksOwner }),
    whileAsking,
    alive,
    note: (step) => noteStep(progress.steps, step),
    tell,
  }
}

/** Returns the person whose files the calls of a turn open. */
export const fileCallerOf = ({
  turn,
  session,
  caller,
  standing,
  namesFile,
}: Pick<CallScope, 'turn' | 'session' | 'caller' | 'standing' | 'namesFile'>): FileCaller => ({
  owner: fileOwner(session, caller),
  session: resultsKey(session, turn),
  isOperator: standing === 'operator',
  names: namesFile,
})

/** Returns the identity of a client towards one agent, so that no state of a tool is shared by two agents. */
export const identityOf = (
  agent: string,
  client: ClientId,
  caller: string | undefined,
): Pick<CallScope, 'agent' | 'client' | 'caller'> => ({
  agent,
  client: agentKey(agent, client) as ClientId,
  caller: caller === undefined ? undefined : agentKey(agent, caller),
})

/**
 * In a room, where others read the answers, the state that a tool keeps for its client, such as an open page, belongs to the writer in this
 * conversation: a page of a direct chat is not shown there, and no other writer reads or uses a page on which the writer is signed in.
 */
const clientIn = ({ agent, client, session, isInRoom }: Pick<CallScope, 'agent' | 'client' | 'session' | 'isInRoom'>): ClientId => {
  const isRoom = session !== null && (isInRoom || sharedRoom(session))
  return agentKey(agent, isRoom ? escapedParts([session, client]) : client) as ClientId
}

/** Returns the owner of the memories of a linked person with one agent, as in `ToolContext.person`. */
export const personFor = (agent: string, limited: Pick<LimitedClient, 'person'> | undefined): string | undefined =>
  limited?.person === undefined ? undefined : agentKey(agent, limited.person)

/** Returns the tools that the turn and its agent both allow now; undefined when neither has a limit. */
export function allowedTools({
  limits,
  tools,
}: {
  readonly limits: () => AgentLimits | undefined
  readonly tools: readonly string[] | undefined
}) {
  const ofAgent = limits()?.tools
  return ofAgent && tools ? tools.filter((name) => ofAgent.includes(name)) : (ofAgent ?? tools)
}

/** Returns the offered tools of the registry among `tools`. */
export const offeredTools = (registry: Pick<Registry, 'offered'>, tools: readonly string[] | undefined): readonly Tool[] =>
  tools ? registry.offered.filter(({ name }) => tools.includes(name)) : registry.offered
