/** The immutable registry: everything turns and requests see of the features, frozen as one (§1 items 5 and 6). */
import type { ModelChain, Registry } from '@sluice/agent'
import type { GatewayConfig, LeftOut } from '@sluice/config'
import { type Feature, type FeatureId, type Logger, rowOf, type Services, type Tool } from '@sluice/sdk'
import { featureStatuses } from './feature-status.ts'
import type { Instance } from './instance.ts'
import { chooseObservers, tellObservers } from './observers.ts'
import type { Live } from './runtime.ts'
import { leftOutLine, leftOutTools, stubRoutes, stubTools } from './stubs.ts'

export interface RegistryInput {
  readonly generation: number
  readonly features: readonly Feature[]
  readonly instances: readonly Instance[]
  readonly leftOut: readonly LeftOut[]
  readonly models: ModelChain
  readonly gateway: GatewayConfig
  /** `[observability] backend` and `backends`. */
  readonly backends: readonly string[]
  readonly log: Logger
}

/** One generation, seen from both sides. */
export interface FrozenRegistry {
  readonly instances: readonly Instance[]
  readonly turns: Registry
  readonly live: Live
  service<Name extends keyof Services>(name: Name): Services[Name] | undefined
}

export function freezeRegistry(input: RegistryInput): FrozenRegistry {
  const { features, instances, generation, log } = input
  const ready = instances.filter((instance) => instance.state() === 'ready')
  const parts = ready.map((instance) => instance.parts)
  const tools = withoutClashes(ready, log).map(({ feature, tool }) => ({ feature, tool, available: tool.available?.() ?? true }))
  const absent = leftOutTools(features, new Set(tools.map(({ tool }) => tool.name)))
  const isConfigured = ({ feature }: { readonly feature: FeatureId }) => input.leftOut.some((section) => section.feature === feature)
  const wanted = absent.filter(isConfigured)
  const offered = [...tools.filter(({ available }) => available), ...wanted].map(({ tool }) => tool)
  const leftOut = leftOutLine(absent.filter((one) => !isConfigured(one)))
  const observers = chooseObservers(
    input.backends,
    parts.flatMap((part) => part.observers ?? []),
    log,
  )
  const observe = tellObservers(observers, log)
  const prompts = parts.flatMap(({ prompt }) => (prompt ? [prompt] : []))
  const turns: Registry = {
    generation,
    tools: new Map([...stubTools(instances), ...[...absent, ...tools].map(({ tool }) => tool)].map((tool) => [tool.name, tool])),
    offered,
    models: input.models,
    prompt: () => [...prompts.map((lines) => lines()), leftOut].filter((lines) => lines !== '').join('\n'),
    observe,
  }
  const live: Live = {
    generation,
    config: input.gateway,
    routes: parts.flatMap((part) => part.routes ?? []),
    stubs: stubRoutes(features, instances),
    channels: parts.flatMap((part) => part.channels ?? []),
    features: featureStatuses(instances, input.leftOut),
    tools: [
      ...tools.map(({ feature, tool, available }) => ({ ...shown(tool), feature, available, compiled: true, build: null })),
      ...absent.map(({ feature, tool, build }) => ({ ...shown(tool), feature, available: false, compiled: false, build })),
    ],
    observers,
    links: () => parts.flatMap((part) => part.links?.() ?? []),
    models: input.models.labels.map(({ provider, model }) => `${provider}:${model}`),
    metricsLoopbackOnly: observers.some(({ loopbackOnly }) => loopbackOnly),
    traces: observers.some(({ traces }) => traces),
    observe,
  }
  return Object.freeze({
    instances,
    turns: Object.freeze(turns),
    live: Object.freeze(live),
    service: <Name extends keyof Services>(name: Name) => parts.find(({ services }) => services?.[name])?.services?.[name],
  })
}

const shown = ({ name, description }: Tool) => ({ name, description })

interface OwnedTool {
  readonly feature: FeatureId
  readonly tool: Tool
}

/** A tool whose name its feature has from elsewhere gives way to any other of that name. */
function withoutClashes(instances: readonly Instance[], log: Logger): OwnedTool[] {
  const owned = instances.flatMap(({ feature, parts: { tools = [] } }) => tools.map((tool): OwnedTool => ({ feature: feature.id, tool })))
  const isNamedAnew = ({ feature }: OwnedTool) => rowOf(feature)?.namesItsTools === true
  const taken = new Set(owned.filter((one) => !isNamedAnew(one)).map(({ tool }) => tool.name))
  return owned.filter((one) => {
    if (!isNamedAnew(one)) return true
    const isFree = !taken.has(one.tool.name)
    if (!isFree) log.warn('a tool is left out: its name is taken', { feature: one.feature, tool: one.tool.name })
    taken.add(one.tool.name)
    return isFree
  })
}
