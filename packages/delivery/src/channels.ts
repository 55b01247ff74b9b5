/** What the delivery side shares: the channels of the moment, and what it is told by whom. */
import type { Agent } from '@sluice/agent'
import type { DeliveryConfig } from '@sluice/config'
import type { LaneQueue } from '@sluice/kit'
import type {
  ApprovalKey,
  Channel,
  Clock,
  Events,
  Inbound,
  Logger,
  Observation,
  Outbound,
  Sops,
  Store,
  Transcribe,
  WithinTrace,
  Workspace,
} from '@sluice/sdk'
import type { Clients } from './client.ts'

/** The part of approvals that delivery uses. */
import type { DeliveryQueue } from './delivery-queue.ts'
import type { InboxRunnerOptions } from './inbox-runner.ts'

export interface DeliveryApprovals {
  /** The approval that a message answers; undefined when it answers none. */
  answered(channel: Channel, inbound: Inbound): ApprovalKey | undefined | Promise<ApprovalKey | undefined>
  /** The message as it is to be sent now: the question of a prompt may have been decided while the prompt waited. */
  current(message: Outbound, limits: Channel['limits']): Promise<Outbound>
}

export interface DeliveryDeps {
  readonly store: Pick<Store, 'inbox' | 'outbox' | 'foreignVersion'>
  readonly agent: Pick<Agent, 'run'>
  readonly clients: Pick<Clients, 'ofCaller'>
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
  /** Changes with every reload. */
  generation(): number
  /** Those that are ready. */
  channels(): readonly Channel[]
  config(): DeliveryConfig
  /** Where messages wait for their turn; the agent's own turns wait there too. */
  readonly lanes: LaneQueue
  observe(observation: Observation): void
  /** An observer wants whole traces. */
  traces(): boolean
  readonly within: WithinTrace
  workspace(): Workspace
  transcribe(): Transcribe | undefined
  readonly approvals: DeliveryApprovals
  /** Makes the worker of messages that answer approvals. */
  createAnswerRunner(options: InboxRunnerOptions): DeliveryQueue
  /** Another process has changed the store. */
  changedElsewhere(): Promise<void>
  /** Absent: every message is a turn. */
  sops(): Pick<Sops, 'matches' | 'fire'> | undefined
  /** Takes secrets out of what others say before it is kept or told. */
  scrub(text: string): string
}

export const channelNamed = ({ channels }: Pick<DeliveryDeps, 'channels'>, name: string): Channel | undefined =>
  channels().find((channel) => channel.name === name)
