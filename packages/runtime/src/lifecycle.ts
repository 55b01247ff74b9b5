/**
 * The life cycle of features (§1 items 3 and 5): build all, register all, freeze the registry, run, close in reverse.
 * A reload builds anew exactly what changed, swaps the registry reference, and closes the old parts once their turns end.
 */

import { chooseProviders, createModelChain, type Lease, type ModelChain } from '@sluice/agent'
import type { LoadedConfig } from '@sluice/config'
import {
  agentSection,
  CORE_SECTIONS,
  gatewaySection,
  httpSection,
  observabilityBackends,
  observabilitySection,
  policySection,
  providerSection,
  sandboxSection,
} from '@sluice/config'
import type { Feature, FeatureId, Host, Section, Services } from '@sluice/sdk'
import { createHost, type HostGuards, type HostParts } from './host.ts'
import { construct, type Instance } from './instance.ts'
import type { ComponentLogger } from './log.ts'
import { type FrozenRegistry, freezeRegistry } from './registry.ts'

/** Registration gets this long before the daemon goes on without; what is late joins by a later registry. */
const REGISTER_WAIT_MS = 1000
/** What takes the place of others waits so long until those have retired. */
const RETIRE_WAIT_MS = 5000

export interface LifecycleOptions {
  readonly features: readonly Feature[]
  readonly host: Omit<HostParts, 'service' | 'rebuild' | 'refresh'>
  readonly log: ComponentLogger
  readonly env: Readonly<Record<string, string | undefined>>
  readonly fetch: typeof fetch
  /** Makes what the configuration's security sections decide. */
  guards(config: LoadedConfig): HostGuards
  /** What the core offers by name. */
  service<Name extends keyof Services>(name: Name): Services[Name] | undefined
  /** Told of each new registry, before the old one retires. */
  onSwap?(registry: FrozenRegistry): void
}

export interface Reload {
  /** Sections whose effective values differ from before. */
  readonly sections: readonly string[]
  /** Features built anew. */
  readonly rebuilt: readonly FeatureId[]
}

export interface Lifecycle {
  current(): FrozenRegistry
  lease(): Lease
  /** Builds for the first configuration, or applies a changed one. Calls run one after the other. */
  apply(config: LoadedConfig): Promise<Reload>
  /** Builds one feature anew with the configuration in force. */
  rebuild(feature: FeatureId, reason: string): Promise<void>
  /** Looks again at what tools are available. */
  refresh(feature: FeatureId, reason: string): Promise<void>
  /** Tells everything that the daemon stops, at once, whatever else goes on. */
  retire(): Promise<void>
  /** Phase 4 for everything, in reverse order. Idempotent. */
  close(): Promise<void>
}

/** A configuration in force, with what was made of it. */
interface Applied {
  readonly config: LoadedConfig
  readonly guards: HostGuards
  readonly models: ModelChain
}

interface Generation {
  readonly registry: FrozenRegistry
  leases: number
}

/** Core sections that decide what tools may do: a change builds every feature with tools anew. */
const GUARD_SECTIONS = [policySection, sandboxSection, httpSection, agentSection]

export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { features, log } = options
  const generations = new Set<Generation>()
  /** Guards of earlier configurations. */
  const replaced = new WeakSet<HostGuards>()
  let current: Generation | undefined
  let applied: Applied | undefined
  let number = 0
  let queue: Promise<unknown> = Promise.resolve()
  let closed = false

  const registry = (): FrozenRegistry => {
    if (!current) throw new Error('no registry before the first configuration is applied')
    return current.registry
  }

  const inOrder = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = queue.then(work)
    queue = result.catch(() => {})
    return result
  }

  const hostOf = (feature: FeatureId, held: HostGuards): Host =>
    createHost(
      feature,
      {
        ...options.host,
        service: (name) => options.service(name) ?? current?.registry.service(name),
        rebuild: (id, reason) =>
          void lifecycle.rebuild(id, reason).catch((error) => log.error('rebuilding failed', { feature: id, error })),
        refresh: (id, reason) =>
          void lifecycle.refresh(id, reason).catch((error) => log.error('refreshing failed', { feature: id, error })),
      },
      () => guardsNow(held),
    )

  /** Those in force, once others have replaced `held`. A feature stays in the workspace that it was built for. */
  const guardsNow = (held: HostGuards): HostGuards => {
    if (!applied || !replaced.has(held)) return held
    const { guards } = applied
    return guards.workspace.root === held.workspace.root ? guards : { ...guards, workspace: held.workspace }
  }

  const instancesNow = (): readonly Instance[] => current?.registry.instances ?? []

  /** Freezes what the instances are now and lets it replace the registry in force. */
  const swap = ({ config, models }: Applied, instances: readonly Instance[]): void => {
    const next: Generation = {
      leases: 0,
      registry: freezeRegistry({
        generation: ++number,
        features,
        instances,
        leftOut: config.leftOut,
        models,
        gateway: config.core(gatewaySection),
        backends: observabilityBackends(config.core(observabilitySection)),
        log,
      }),
    }
    const previous = current
    generations.add(next)
    current = next
    options.onSwap?.(next.registry)
    if (previous) retireIfIdle(previous)
  }

  /** An old generation whose last lease is gone takes the parts with it that no other generation has. */
  const retireIfIdle = (generation: Generation): void => {
    if (generation === current || generation.leases > 0 || !generations.delete(generation)) return
    const alive = new Set([...generations].flatMap(({ registry: { instances } }) => instances))
    void closeInReverse(generation.registry.instances.filter((instance) => !alive.has(instance)))
  }

  const modelsOf = (inForce: LoadedConfig, instances: readonly Instance[]): ModelChain => {
    const providers = instances.flatMap(({ parts }) => parts.providers ?? [])
    const settings = chooseProviders(inForce.core(providerSection), providers, options.env)
    return createModelChain({ settings, providers, fetch: options.fetch })
  }

  const retireReplaced = async (by: readonly Instance[]): Promise<void> => {
    const replaced = instancesNow().filter((instance) => instance.parts.retire && !by.includes(instance))
    if (replaced.length > 0) await Promise.race([retireAll(replaced), options.host.clock.sleep(RETIRE_WAIT_MS)])
  }

  /** Registers, waits a moment, swaps; what registers late gets a registry of its own. */
  const registerAndSwap = async (next: Applied, instances: readonly Instance[]): Promise<void> => {
    await retireReplaced(instances)
    const late = instances.filter((instance) => instance.state() === 'starting')
    const registered = Promise.all(late.map((instance) => instance.register()))
    if (late.length > 0) await Promise.race([registered, options.host.clock.sleep(REGISTER_WAIT_MS)])
    if (applied && applied.guards !== next.guards) replaced.add(applied.guards)
    applied = next
    swap(next, instances)
    if (!late.some((instance) => instance.state() === 'starting')) return
    const join = async () => {
      if (!closed && applied && late.some((instance) => instancesNow().includes(instance))) swap(applied, instancesNow())
    }
    void registered.then(() => inOrder(join))
  }

  const lifecycle: Lifecycle = {
    current: registry,
    lease() {
      const generation = current
      if (!generation) throw new Error('no registry before the first configuration is applied')
      generation.leases += 1
      let released = false
      return {
        registry: generation.registry.turns,
        release() {
          if (released) return
          released = true
          generation.leases -= 1
          retireIfIdle(generation)
        },
      }
    },
    apply: (next) =>
      inOrder(async () => {
        const before = applied?.config
        const changed = (owner: FeatureId | 'core', { path }: Pick<Section, 'path'>) => before?.hash(owner, path) !== next.hash(owner, path)
        const guardsChanged = !before || GUARD_SECTIONS.some((section) => guardValueChanged(section, before, next))
        const guards = applied && !guardsChanged ? applied.guards : options.guards(next)
        const previous = new Map(instancesNow().map((instance) => [instance.feature.id, instance]))
        const stale = features.filter(({ id, section }) => {
          const instance = previous.get(id)
          return !instance || (section && changed(id, section)) || (guardsChanged && usesGuards(instance))
        })
        const instances = features.map((feature) => {
          const kept = stale.includes(feature) ? undefined : previous.get(feature.id)
          return kept ?? construct(feature, hostOf(feature.id, guards), next.of(feature.id))
        })
        const fresh = instances.filter((instance) => previous.get(instance.feature.id) !== instance)
        const modelsKept = applied && !changed('core', providerSection) && !stale.some(({ id }) => previous.get(id)?.parts.providers)
        const models = applied && modelsKept ? applied.models : await orClose(fresh, () => modelsOf(next, instances))
        await registerAndSwap({ config: next, guards, models }, instances)
        const sections = [
          ...CORE_SECTIONS.filter((section) => changed('core', section)).map(({ path }) => path),
          ...features.flatMap(({ id, section }) => (section && changed(id, section) ? [section.path] : [])),
        ]
        return { sections: [...new Set(sections)], rebuilt: stale.map(({ id }) => id) }
      }),
    rebuild: (id, reason) =>
      inOrder(async () => {
        const feature = features.find((candidate) => candidate.id === id)
        if (!feature || closed || !applied) return
        const { config, guards } = applied
        log.info('building a feature anew', { feature: id, reason })
        const fresh = construct(feature, hostOf(id, guards), config.of(id))
        const instances = instancesNow().map((instance) => (instance.feature.id === id ? fresh : instance))
        const models = fresh.parts.providers ? await orClose([fresh], () => modelsOf(config, instances)) : applied.models
        await registerAndSwap({ config, guards, models }, instances)
      }),
    refresh: (id, reason) =>
      inOrder(async () => {
        if (closed || !applied) return
        log.info('looking again at what is available', { feature: id, reason })
        swap(applied, instancesNow())
      }),
    retire: () => retireAll(instancesNow()),
    close: () =>
      inOrder(async () => {
        if (closed) return
        closed = true
        const all = new Set([...generations].flatMap(({ registry: { instances } }) => instances))
        await closeInReverse([...all])
      }),
  }
  return lifecycle
}

/** What was built for a configuration that turns out unusable is closed again; the one in force stays. */
async function orClose<Result>(fresh: readonly Instance[], make: () => Result): Promise<Result> {
  try {
    return make()
  } catch (error) {
    await closeInReverse(fresh)
    throw error
  }
}

async function retireAll(instances: readonly Instance[]): Promise<void> {
  await Promise.all(instances.map((instance) => instance.retire()))
}

async function closeInReverse(instances: readonly Instance[]): Promise<void> {
  for (const instance of instances.toReversed()) await instance.close()
}

/** What tools may do, and what services do for them, is decided by the guards they were built with. */
const usesGuards = ({ parts: { tools = [], services } }: Instance): boolean => tools.length > 0 || services !== undefined

/** Of `[agent]` only the workspace matters to tools. */
function guardValueChanged(section: (typeof GUARD_SECTIONS)[number], before: LoadedConfig, next: LoadedConfig): boolean {
  if (section === agentSection) return before.core(agentSection).workspace !== next.core(agentSection).workspace
  return before.hash('core', section.path) !== next.hash('core', section.path)
}
