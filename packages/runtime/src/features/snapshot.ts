/**
 * The snapshot: one immutable set of features in force. A changed configuration, a feature that registers late and a
 * changed list of tools each make a new snapshot; a turn keeps the one it began with.
 */
import type { ModelChain, Registry } from '@sluice/agent'
import { type GatewayConfig, gatewaySection, type LoadedConfig, observabilityBackends, observabilitySection } from '@sluice/config'
import {
  type Channel,
  type Feature,
  type FeatureId,
  type LinkHealth,
  type Logger,
  MAIN_AGENT,
  type Observation,
  type Observer,
  type Route,
  rowOfFeature,
  type Services,
  type SocketRoute,
  type Tool,
} from '@sluice/sdk'
import type { ComponentLogger } from '../log/log.ts'
import { type FeatureStatus, featureStatuses } from './feature-status.ts'
import type { Instance } from './instance.ts'
import { chooseObservers, notifyObservers } from './observers.ts'
import { leftOutTools, type StubRoute, stubRoutes, stubTools } from './stubs.ts'

export interface Snapshot {
  /** Counts the snapshots of this run of the daemon, from 1. */
  readonly version: number
  readonly config: LoadedConfig
  /** The `[gateway]` section of `config`. */
  readonly gateway: GatewayConfig
  /** Every feature of the build, in the order of the profile, whatever its state. */
  readonly instances: readonly Instance[]
  /** The features as a turn of the main agent sees them. */
  readonly registry: Registry
  /** The features as a turn of each agent sees them, by the name of the agent. */
  readonly registries: ReadonlyMap<string, Registry>
  readonly routes: readonly Route[]
  readonly sockets: readonly SocketRoute[]
  /** Routes that answer in place of features that are left out of the build or not ready. */
  readonly stubs: readonly StubRoute[]
  /** The channels that are ready. */
  readonly channels: readonly Channel[]
  readonly features: readonly FeatureStatus[]
  readonly tools: readonly ToolStatus[]
  /** The observers that `[observability]` chooses. */
  readonly observers: readonly Observer[]
  /** The model of the main agent and its fallbacks, each as `provider:model`. */
  readonly models: readonly string[]
  /** True: without an observer that renders metrics, `/metrics` answers loopback peers only. */
  readonly metricsLoopbackOnly: boolean
  /** True: an observer records whole traces. */
  readonly wantsTraces: boolean
  /** The connections that features keep open, channels excluded, as they are at the time of the call. */
  links(): readonly LinkHealth[]
  /** Hands an observation to every observer. Never throws. */
  observe(observation: Observation): void
  /** The first service of this name that a ready feature offers. */
  service<Name extends keyof Services>(name: Name): Services[Name] | undefined
}

export interface ToolStatus {
  readonly name: string
  readonly description: string
  readonly feature: FeatureId
  readonly available: boolean
  /** False: its feature is left out of this build. */
  readonly compiled: boolean
  /** The command that makes a build with the tool; null where it is compiled in. */
  readonly build: string | null
}

export interface SnapshotParts {
  readonly version: number
  readonly features: readonly Feature[]
  readonly instances: readonly Instance[]
  readonly config: LoadedConfig
  /** The models by the name of the agent. */
  readonly models: ReadonlyMap<string, ModelChain>
}

/** Reads the parts of every ready feature once, and freezes the result. */
export function freezeSnapshot({ version, features, instances, config, models }: SnapshotParts, log: ComponentLogger): Snapshot {
  const ready = instances.filter((instance) => instance.state() === 'ready')
  const parts = ready.map((instance) => instance.parts)
  const tools = withoutClashes(ready, log).map(({ feature, tool }) => ({ feature, tool, available: tool.available?.() ?? true }))
  const absent = leftOutTools(features, new Set(tools.map(({ tool }) => tool.name)))
  const backends = observabilityBackends(config.core(observabilitySection))
  const offeredObservers = parts.flatMap((part) => part.observers ?? [])
  const observers = chooseObservers(backends, offeredObservers, log)
  const observe = notifyObservers(observers, log)
  const prompts = parts.flatMap(({ prompt }) => (prompt ? [prompt] : []))

  const common = {
    tools: new Map([...stubTools(instances), ...[...absent, ...tools].map(({ tool }) => tool)].map((tool) => [tool.name, tool])),
    offered: tools.filter(({ available }) => available).map(({ tool }) => tool),
    prompt: () =>
      prompts
        .map((lines) => lines())
        .filter((lines) => lines !== '')
        .join('\n'),
    observe,
  }
  const registries = new Map([...models].map(([agent, chain]): [string, Registry] => [agent, Object.freeze({ ...common, models: chain })]))
  const registry = registries.get(MAIN_AGENT)
  if (!registry) throw new Error('the main agent has no models')

  return Object.freeze<Snapshot>({
    version,
    config,
    gateway: config.core(gatewaySection),
    instances,
    registry,
    registries,
    routes: parts.flatMap((part) => part.routes ?? []),
    sockets: parts.flatMap((part) => part.sockets ?? []),
    stubs: stubRoutes(features, instances),
    channels: parts.flatMap((part) => part.channels ?? []),
    features: featureStatuses(instances, config.leftOut),
    tools: [
      ...tools.map(({ feature, tool, available }) => ({ ...nameOf(tool), feature, available, compiled: true, build: null })),
      ...absent.map(({ feature, tool, build }) => ({ ...nameOf(tool), feature, available: false, compiled: false, build })),
    ],
    observers,
    models: registry.models.labels.map(({ provider, model }) => `${provider}:${model}`),
    metricsLoopbackOnly: observers.some(({ loopbackOnly }) => loopbackOnly),
    wantsTraces: observers.some(({ traces }) => traces),
    links: () => parts.flatMap((part) => part.links?.() ?? []),
    observe,
    service: (name) => parts.find(({ services }) => services?.[name])?.services?.[name],
  })
}

const nameOf = ({ name, description }: Tool) => ({ name, description })

interface OwnedTool {
  readonly feature: FeatureId
  readonly isNamedElsewhere: boolean
  readonly tool: Tool
}

/**
 * The tools of these features, each name once. A feature whose tools are named elsewhere, such as by a plugin, gives way
 * to every other feature.
 */
function withoutClashes(instances: readonly Instance[], log: Logger): OwnedTool[] {
  const owned = instances.flatMap(({ feature, parts: { tools = [] } }) => {
    const isNamedElsewhere = rowOfFeature(feature)?.namesItsTools === true
    return tools.map((tool): OwnedTool => ({ feature: feature.id, isNamedElsewhere, tool }))
  })
  const taken = new Set(owned.filter((one) => !one.isNamedElsewhere).map(({ tool }) => tool.name))
  return owned.filter((one) => {
    if (!one.isNamedElsewhere) return true
    const isFree = !taken.has(one.tool.name)
    if (!isFree) log.warn('tool left out because its name is used', { feature: one.feature, tool: one.tool.name })
    taken.add(one.tool.name)
    return isFree
  })
}
