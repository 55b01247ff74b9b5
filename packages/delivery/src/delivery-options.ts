/** The collaborators of durable delivery. */
import type { Agent } from '@sluice/agent'
import type { DeliveryConfig, Pacing, Reset } from '@sluice/config'
import type { LaneQueue } from '@sluice/kit'
import type { Ownership } from '@sluice/ownership'
import type {
  AgentWorkspace,
  ApprovalKey,
  Channel,
  ChatSession,
  Clock,
  Events,
  GatewayTexts,
  Inbound,
  Logger,
  Observation,
  Outbound,
  Sops,
  StartedMessage,
  Store,
  StoreChange,
  Transcribe,
  WithinTrace,
} from '@sluice/sdk'
import type { Clients } from './clients.ts'
import type { AdmissionOptions } from './inbox/admit-message.ts'
import type { RoomDefaults } from './inbox/rooms.ts'
import type { People } from './people/people.ts'

export interface DeliveryOptions {
  readonly store: Pick<Store, 'cluster' | 'inbox' | 'keyValue' | 'outbox' | 'sessions' | 'turns' | 'onChange'>
  readonly ownership: Pick<Ownership, 'onShards' | 'ownsAll' | 'whileHolding'>
  readonly features: DeliveryFeatures
  readonly turns: DeliveryTurns
  readonly approvals: DeliveryApprovals
  readonly limits: AdmissionOptions
  readonly people: People
  readonly telemetry: DeliveryTelemetry
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
  /** When a backup was restored to the store last; undefined if never. */
  readonly restoredAtMs?: number | undefined
  /** Removes secrets from a text that another system wrote, before it is stored or reported. */
  scrub(text: string): string
  /** Called after another process has changed the store. */
  changedElsewhere(change: StoreChange): Promise<void>
}

/** The features and settings in force. Each call reads the current ones, because a reload may change them. */
export interface DeliveryFeatures {
  /** Calls `listener` after each change of the features in force. Returns an unsubscribe function. */
  onChange(listener: () => void): () => void
  /** The channels that are ready. */
  channels(): readonly Channel[]
  config(): DeliveryConfig
  /** The texts of `[gateway.texts]`. */
  texts(): GatewayTexts
  /** Returns the agent that answers a conversation. */
  agentOf(chat: Pick<ChatSession, 'channel' | 'account' | 'conversation'>): string
  /** Returns the configured models of an agent, such as `openai:gpt-5`, the first one first; empty for an unknown agent. */
  models(agent: string): readonly string[]
  /** Returns how the messages of one person follow each other on a channel. */
  pacing(channel: string): Pacing
  /** Returns when conversations of an agent on a channel begin again without their history; undefined for never. */
  reset(channel: string, agent: string): Reset | undefined
  /** Returns the keys of a channel for rooms without a rule. */
  rooms(channel: string): RoomDefaults
  /** Returns the workspace of an agent; undefined when it is not configured. */
  workspace(agent: string): AgentWorkspace | undefined
  /** Ends the commands of a conversation that run in the background. */
  endCommands(session: string): Promise<void>
  /** Undefined: recordings are files like any other. */
  transcribe(): Transcribe | undefined
  /** Undefined: no message starts a procedure. */
  procedures(): Procedures | undefined
}

/** The part of the engine of procedures that delivery uses. */
export type Procedures = Pick<Sops, 'matches' | 'fire'>

/** The parts of the agent that run the turns of messages. */
export interface DeliveryTurns {
  readonly agent: Pick<Agent, 'run' | 'requestAbort'>
  /** The queue in which messages and the agent's other turns wait. */
  readonly lanes: LaneQueue
  readonly clients: Pick<Clients, 'ofCaller'>
}

/** The part of approvals that delivery uses. */
export interface DeliveryApprovals {
  /** Returns the approval that a text answers, if there is one. Called for every message with a text and without a pressed button. */
  matchReply(channel: Channel, inbound: Inbound): ApprovalKey | undefined | Promise<ApprovalKey | undefined>
  /** Whether the sender of a reply to this approval, or of a pressed button, decides it as an operator. */
  answersAsOperator(channel: Channel, inbound: Inbound, approval?: ApprovalKey): Promise<boolean>
  /**
   * Returns the text that reminds the sender of a message of the question that waits in its conversation; undefined if none waits there
   * that the sender could decide, or the sender got the text before.
   */
  hint(channel: Channel, inbound: Inbound): Promise<string | undefined> | undefined
  /** Whether a question waits in the conversation of a message. */
  isAsking(channel: Channel, inbound: Inbound): boolean
  /** Decides the approval that the message answers, or tells the sender why it decides nothing, and ends the message in the same commit. */
  handleReply(message: StartedMessage): Promise<void>
  /** Returns the message to send in place of one with buttons, because the approval of a prompt may have been decided while it waited. */
  current(message: Outbound, limits: Channel['limits']): Promise<Outbound>
}

export interface DeliveryTelemetry {
  observe(observation: Observation): void
  /** Whether an observer wants traces. */
  traces(): boolean
  readonly within: WithinTrace
}

export const channelNamed = ({ channels }: Pick<DeliveryFeatures, 'channels'>, name: string): Channel | undefined =>
  channels().find((channel) => channel.name === name)
