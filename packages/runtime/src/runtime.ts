/** What the HTTP side works with: the living parts of one daemon, and the registry of the moment. */
import type { Agent } from '@sluice/agent'
import type { ApprovalRegistry } from '@sluice/approvals'
import type { GatewayConfig } from '@sluice/config'
import type { DeliveryQueues } from '@sluice/delivery'
import type {
  Channel,
  Clock,
  ErrorCode,
  FeatureId,
  LinkHealth,
  Logger,
  Observation,
  Observer,
  Route,
  Sops,
  Store,
  Vitals,
} from '@sluice/sdk'
import type { EventBus } from './bus.ts'
import type { HealthWatch } from './health.ts'
import type { HideSecrets } from './hide-secrets.ts'

/** `starting`: registration has not ended yet. `unavailable`: this machine lacks something that the feature needs. */
export type FeatureState = 'ready' | 'starting' | 'unavailable' | 'unconfigured' | 'failed' | 'left_out'

/** One row of `sluice features` (decisions, command line contract). */
export interface FeatureStatus {
  readonly feature: FeatureId
  readonly flag: string | null
  readonly kind: string
  /** In this build. */
  readonly compiled: boolean
  /** Its package is in this release, and what it needs is on this machine. */
  readonly installed: boolean
  readonly configured: boolean
  readonly state: FeatureState
  /** Why it is not ready; null when it is. */
  readonly reason: string | null
  /** How to get it; null when it is compiled in. */
  readonly build: string | null
}

export interface ToolStatus {
  readonly name: string
  readonly description: string
  readonly feature: FeatureId
  readonly available: boolean
  /** False: its feature is left out of this build. */
  readonly compiled: boolean
  /** The command that builds it in; null where it is compiled in. */
  readonly build: string | null
}

/** A route that answers for something this daemon does not offer now. */
export interface StubRoute {
  readonly method: string
  readonly path: string
  readonly code: Extract<ErrorCode, 'not_compiled' | 'not_found' | 'unavailable'>
  readonly detail: string
  readonly fields?: Readonly<Record<string, unknown>>
}

/** The parts the HTTP side reads from one registry; replaced as a whole on reload. */
export interface Live {
  readonly generation: number
  readonly config: GatewayConfig
  readonly routes: readonly Route[]
  readonly stubs: readonly StubRoute[]
  /** Those that are ready. */
  readonly channels: readonly Channel[]
  readonly features: readonly FeatureStatus[]
  readonly tools: readonly ToolStatus[]
  readonly observers: readonly Observer[]
  /** The connections that features keep open beside channels. */
  links(): readonly LinkHealth[]
  /** The configured model and its fallbacks, `provider:model`. */
  readonly models: readonly string[]
  /** Of the metrics endpoint when no observer renders; true: loopback peers only. */
  readonly metricsLoopbackOnly: boolean
  /** An observer wants whole traces. */
  readonly traces: boolean
  observe(observation: Observation): void
}

/** One daemon, for its whole life. */
export interface Runtime {
  readonly version: string
  readonly profile: string
  readonly startedAtMs: number
  readonly store: Store
  readonly agent: Agent
  readonly bus: EventBus
  readonly clock: Clock
  readonly log: Logger
  /** Masks the configured secrets in what is answered. */
  readonly hideSecrets: HideSecrets
  /** The registry of the moment. */
  live(): Live
  vitals(): Vitals
  readonly health: HealthWatch
  /** The engine of procedures; undefined until it has started. */
  sops(): Sops | undefined
  readonly approvals: ApprovalRegistry
  /** The delivery queues; where there are none, nothing waits and nobody is woken. */
  readonly delivery: DeliveryQueues
}
