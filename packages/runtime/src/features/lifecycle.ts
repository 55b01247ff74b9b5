/**
 * The life cycle of features: build all, register all, freeze a snapshot, run, drain, close in reverse order.
 * A changed configuration builds again only the features that it touches, freezes the next snapshot, and closes the
 * replaced features once the last turn that uses them has ended.
 */

import { chooseProviders, createModelChain, type ModelChain, type RegistryPin } from '@sluice/agent'
import type { LoadedConfig } from '@sluice/config'
import { agentsSection, CORE_SECTIONS, httpSection, policySection, providerSection, sandboxSection, workspaceRoots } from '@sluice/config'
import { endsWithin, SerialQueue } from '@sluice/kit'
import { AppError, checkParts, type Feature, type FeatureId, type Host, MAIN_AGENT, type Services, sectionsOfFeature } from '@sluice/sdk'
import type { ComponentLogger } from '../log/log.ts'
import type { AgentInForce, AgentsInForce } from './agents.ts'
import type { Guards } from './guards.ts'
import { createHost, type HostGuards, type HostServices } from './host.ts'
import { buildInstance, type Instance } from './instance.ts'
import { freezeSnapshot, type Snapshot } from './snapshot.ts'

/** The daemon waits this long for registration. A feature that takes longer joins with a later snapshot. */
const REGISTER_WAIT_MS = 1000
/** New instances wait this long for the instances that they replace to drain. */
const DRAIN_WAIT_MS = 5000

export interface LifecycleOptions {
  readonly features: readonly Feature[]
  readonly host: HostServices
  /** False: no turn will run, so no provider is needed. Default: true. */
  readonly needsModel?: boolean
  readonly log: ComponentLogger
  readonly env: Readonly<Record<string, string | undefined>>
  /** Makes the guards that the security sections of a configuration ask for. */
  guards(config: LoadedConfig): Guards
  /** Makes the agents of a configuration. */
  agents(config: LoadedConfig): AgentsInForce
  /** The services of the core; a service of a feature is used where this returns undefined. */
  service<Name extends keyof Services>(name: Name): Services[Name] | undefined
}

export interface Reload {
  /** Sections whose effective values differ from before. */
  readonly sections: readonly string[]
  /** Features that were built again. */
  readonly rebuilt: readonly FeatureId[]
}

/** The configuration in force, with everything that was made for it. */
interface Applied {
  readonly config: LoadedConfig
  readonly guards: Guards
  readonly agents: AgentsInForce
  readonly models: AgentModels
}

/** The models of each agent. */
export type AgentModels = ReadonlyMap<string, ModelChain>

/** A snapshot that is in force or still used by a turn. */
interface HeldSnapshot {
  readonly snapshot: Snapshot
  pins: number
}

/** The core sections that decide what tools may do, in addition to the workspaces: a change builds every feature with tools or services again. */
const GUARD_SECTIONS = [policySection, sandboxSection, httpSection]

export class Lifecycle {
  readonly #options: LifecycleOptions
  /** Runs one change of the features at a time. */
  readonly #changes = new SerialQueue({ name: 'a change of the features', tasksMax: Number.POSITIVE_INFINITY })
  readonly #held = new Set<HeldSnapshot>()
  readonly #listeners = new Set<(snapshot: Snapshot) => void>()
  /** Guards of earlier configurations. */
  readonly #replacedGuards = new WeakSet<Guards>()
  #current: HeldSnapshot | undefined
  #applied: Applied | undefined
  #version = 0
  #isClosed = false

  constructor(options: LifecycleOptions) {
    this.#options = options
  }

  /** The snapshot in force. Throws before the first configuration is applied. */
  readonly snapshot = (): Snapshot => this.#inForce().snapshot

  /**
   * Calls `listener` with each new snapshot, right after it came into force and before the features it replaces close.
   * Listeners are called in the order of their subscription; one that throws is logged and does not stop the others.
   * Returns an unsubscribe function.
   */
  readonly onSnapshot = (listener: (snapshot: Snapshot) => void): (() => void) => {
    // A function of its own, so that a listener that is subscribed twice is called twice.
    const subscribed = (snapshot: Snapshot) => listener(snapshot)
    this.#listeners.add(subscribed)
    return () => void this.#listeners.delete(subscribed)
  }

  /** The guards in force; undefined before the first configuration is applied. */
  guards(): Guards | undefined {
    return this.#applied?.guards
  }

  /** The agents in force; empty before the first configuration is applied. */
  agents(): AgentsInForce {
    return this.#applied?.agents ?? new Map()
  }

  /** Keeps the features of the snapshot in force open until the pin is released. An agent that is not configured gets what `main` has. */
  readonly pin = (agent: string): RegistryPin => {
    const held = this.#inForce()
    held.pins += 1
    let isReleased = false
    return {
      registry: held.snapshot.registries.get(agent) ?? held.snapshot.registry,
      release: () => {
        if (isReleased) return
        isReleased = true
        held.pins -= 1
        this.#closeIfUnused(held)
      },
    }
  }

  /** Applies the first or a changed configuration. One that cannot be applied rejects, and leaves the one in force. */
  apply(next: LoadedConfig): Promise<Reload> {
    return this.#changes.run(() => this.#apply(next))
  }

  /** Builds one feature again with the configuration in force. */
  rebuild(id: FeatureId, reason: string): Promise<void> {
    return this.#changes.run(() => this.#rebuild(id, reason))
  }

  /** Freezes a new snapshot of the same features, for later turns, because a feature's list of tools changed. */
  refresh(id: FeatureId, reason: string): Promise<void> {
    return this.#changes.run(async () => {
      if (this.#isClosed || !this.#applied) return
      this.#options.log.info('refreshing the tools of a feature', { feature: id, reason })
      this.#replaceSnapshot(this.#applied, this.#instances())
    })
  }

  /** Drains every feature at once, without waiting for a change that is under way. */
  async drain(): Promise<void> {
    await drainAll(this.#instances())
  }

  /** Closes every feature in reverse order. Idempotent. */
  close(): Promise<void> {
    return this.#changes.run(async () => {
      if (this.#isClosed) return
      this.#isClosed = true
      await closeInReverse([...this.#heldInstances()])
    })
  }

  async #apply(next: LoadedConfig): Promise<Reload> {
    const { features } = this.#options
    const before = this.#applied?.config
    const hasChanged = (owner: FeatureId | 'core', { path }: { readonly path: string }) =>
      before?.hash(owner, path) !== next.hash(owner, path)
    const guardsChanged = !before || GUARD_SECTIONS.some(({ path }) => hasChanged('core', { path })) || this.#workspacesDiffer(before, next)
    const guards = this.#applied && !guardsChanged ? this.#applied.guards : this.#options.guards(next)

    const previous = new Map(this.#instances().map((instance) => [instance.feature.id, instance]))
    const changedSections = (feature: Feature) => sectionsOfFeature(feature).filter((section) => hasChanged(feature.id, section))
    const stale = features.filter((feature) => {
      const instance = previous.get(feature.id)
      return !instance || changedSections(feature).length > 0 || (guardsChanged && usesGuards(instance))
    })
    const instances = features.map((feature) => {
      const kept = stale.includes(feature) ? undefined : previous.get(feature.id)
      return kept ?? buildInstance(feature, this.#hostOf(feature.id, guards), next)
    })
    const fresh = instances.filter((instance) => previous.get(instance.feature.id) !== instance)

    try {
      checkParts(instances)
    } catch (error) {
      await closeInReverse(fresh)
      throw error
    }
    const agents = this.#options.agents(next)
    const modelsChanged =
      [providerSection, agentsSection].some((section) => hasChanged('core', section)) ||
      stale.some(({ id }) => previous.get(id)?.parts.providers)
    const models = this.#applied && !modelsChanged ? this.#applied.models : await this.#modelsOrClose(agents, instances, fresh)
    await this.#registerAndReplace({ config: next, guards, agents, models }, instances)

    const sections = [
      ...CORE_SECTIONS.filter((section) => hasChanged('core', section)).map(({ path }) => path),
      ...features.flatMap(changedSections).map(({ path }) => path),
    ]
    return { sections: [...new Set(sections)], rebuilt: stale.map(({ id }) => id) }
  }

  async #rebuild(id: FeatureId, reason: string): Promise<void> {
    const feature = this.#options.features.find((candidate) => candidate.id === id)
    if (!feature || this.#isClosed || !this.#applied) return
    const { config, guards, agents } = this.#applied
    this.#options.log.info('rebuilding a feature', { feature: id, reason })
    const fresh = buildInstance(feature, this.#hostOf(id, guards), config)
    const instances = this.#instances().map((instance) => (instance.feature.id === id ? fresh : instance))
    const models = fresh.parts.providers ? await this.#modelsOrClose(agents, instances, [fresh]) : this.#applied.models
    await this.#registerAndReplace({ config, guards, agents, models }, instances)
  }

  /** Drains what is replaced, registers, and replaces the snapshot; a feature that registers late gets one more snapshot. */
  async #registerAndReplace(next: Applied, instances: readonly Instance[]): Promise<void> {
    const { clock } = this.#options.host
    const replaced = this.#instances().filter((instance) => instance.parts.drain && !instances.includes(instance))
    if (replaced.length > 0) await endsWithin(drainAll(replaced), DRAIN_WAIT_MS, clock)

    const starting = instances.filter((instance) => instance.state() === 'starting')
    const registered = Promise.all(starting.map((instance) => instance.register()))
    if (starting.length > 0) await endsWithin(registered, REGISTER_WAIT_MS, clock)

    if (this.#applied && this.#applied.guards !== next.guards) this.#replacedGuards.add(this.#applied.guards)
    this.#applied = next
    this.#replaceSnapshot(next, instances)
    if (starting.some((instance) => instance.state() === 'starting')) void registered.then(() => this.#join(starting))
  }

  /** Lets features that registered late into the next snapshot, unless they were replaced meanwhile. */
  #join(late: readonly Instance[]): Promise<void> {
    return this.#changes.run(async () => {
      const instances = this.#instances()
      if (!this.#isClosed && this.#applied && late.some((instance) => instances.includes(instance)))
        this.#replaceSnapshot(this.#applied, instances)
    })
  }

  #replaceSnapshot({ config, models }: Applied, instances: readonly Instance[]): void {
    const { features, log } = this.#options
    const snapshot = freezeSnapshot({ version: ++this.#version, features, instances, config, models }, log)
    const previous = this.#current
    this.#current = { snapshot, pins: 0 }
    this.#held.add(this.#current)
    for (const listener of this.#listeners) {
      try {
        listener(snapshot)
      } catch (error) {
        log.error('snapshot listener failed', { error })
      }
    }
    if (previous) this.#closeIfUnused(previous)
  }

  /** Closes a replaced snapshot without pins: all its features that no other held snapshot uses. */
  #closeIfUnused(held: HeldSnapshot): void {
    if (held === this.#current || held.pins > 0 || !this.#held.delete(held)) return
    const inUse = this.#heldInstances()
    void closeInReverse(held.snapshot.instances.filter((instance) => !inUse.has(instance)))
  }

  /** Makes the models of a configuration; if that fails, closes what was built for it, and rejects. */
  async #modelsOrClose(agents: AgentsInForce, instances: readonly Instance[], fresh: readonly Instance[]): Promise<AgentModels> {
    const { env, host, log, needsModel = true } = this.#options
    const providers = instances.flatMap(({ parts }) => parts.providers ?? [])
    try {
      const settingsOf = (agent: AgentInForce) => providersOf(agent, () => chooseProviders(agent.provider, providers, env))
      const chainOf = (agent: AgentInForce) =>
        createModelChain({
          settings: needsModel ? settingsOf(agent) : [],
          providers,
          fetch: host.fetch,
          timeoutSecs: agent.agent.model_timeout_secs,
          log,
        })
      return new Map([...agents].map(([name, agent]) => [name, chainOf(agent)]))
    } catch (error) {
      await closeInReverse(fresh)
      throw error
    }
  }

  #hostOf(feature: FeatureId, guards: Guards): Host {
    const { host, log, service } = this.#options
    return createHost(feature, host, {
      guards: () => this.#guardsNow(guards),
      service: (name) => service(name) ?? this.#current?.snapshot.service(name),
      rebuild: (id, reason) => void this.rebuild(id, reason).catch((error) => log.error('feature rebuild failed', { feature: id, error })),
      refresh: (id, reason) => void this.refresh(id, reason).catch((error) => log.error('feature refresh failed', { feature: id, error })),
    })
  }

  /** The guards in force, once `built` were replaced. */
  #guardsNow(built: Guards): HostGuards {
    return this.#applied && this.#replacedGuards.has(built) ? this.#applied.guards : built
  }

  #workspacesDiffer(before: LoadedConfig, next: LoadedConfig): boolean {
    const [old, fresh] = [before, next].map((config) => JSON.stringify(workspaceRoots(config, this.#options.host.dataDir)))
    return old !== fresh
  }

  #inForce(): HeldSnapshot {
    if (!this.#current) throw new Error('no snapshot before the first configuration is applied')
    return this.#current
  }

  #instances(): readonly Instance[] {
    return this.#current?.snapshot.instances ?? []
  }

  #heldInstances(): Set<Instance> {
    return new Set([...this.#held].flatMap(({ snapshot }) => snapshot.instances))
  }
}

async function drainAll(instances: readonly Instance[]): Promise<void> {
  await Promise.all(instances.map((instance) => instance.drain()))
}

async function closeInReverse(instances: readonly Instance[]): Promise<void> {
  for (const instance of instances.toReversed()) await instance.close()
}

/** Tools and services keep the guards that they were built with. */
const usesGuards = ({ parts: { tools = [], services } }: Instance): boolean => tools.length > 0 || services !== undefined

/** Names the section of the agent in a problem with its provider. */
function providersOf<Settings>({ name }: AgentInForce, choose: () => Settings): Settings {
  try {
    return choose()
  } catch (error) {
    const isOther = name !== MAIN_AGENT && error instanceof AppError
    throw isOther ? new AppError(error.code, `agents.${name}.provider: ${error.message}`, { cause: error }) : error
  }
}
