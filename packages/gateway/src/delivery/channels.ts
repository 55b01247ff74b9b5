/** What the delivery side shares: the channels of the moment, and what it is told by whom. */
import type { Agent } from '@sluice/agent'
import type { Channel, Clock, Events, Logger, Observation, Sops, Store, Transcribe, WithinTrace, Workspace } from '@sluice/sdk'
import type { ApprovalRegistry } from '../approvals/registry.ts'
import type { DeliveryConfig } from '../config/core-sections.ts'
import type { Clients } from '../http/client.ts'

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
  /** Turns that run at once. */
  turnsMax(): number
  observe(observation: Observation): void
  /** An observer wants whole traces. */
  traces(): boolean
  readonly within: WithinTrace
  workspace(): Workspace
  transcribe(): Transcribe | undefined
  readonly approvals: Pick<ApprovalRegistry, 'answered' | 'pressed' | 'current' | 'get' | 'decide'>
  /** Another process has changed the store. */
  changedElsewhere(): Promise<void>
  /** Absent: every message is a turn. */
  sops(): Pick<Sops, 'matches' | 'fire'> | undefined
  /** Takes secrets out of what others say before it is kept or told. */
  scrub(text: string): string
}

export const channelNamed = ({ channels }: Pick<DeliveryDeps, 'channels'>, name: string): Channel | undefined =>
  channels().find((channel) => channel.name === name)
