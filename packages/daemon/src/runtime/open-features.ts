/** The features of a runtime: their life cycle, the snapshot in force, and the services that parts of the core offer them. */
import { configuredSecrets, type LoadedConfig, parseConfig } from '@sluice/config'
import { createAgents, createGuards, type Guards, type Instance, Lifecycle, type Reload, type Snapshot } from '@sluice/runtime'
import { createOutboundFetch } from '@sluice/runtime/outbound-fetch'
import type { AgentWorkspace, Services, Sops } from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import type { InForce } from './in-force.ts'
import { logLevelOf, type Opened } from './opened.ts'
import type { RuntimeOptions } from './runtime-options.ts'

export interface Features {
  readonly lifecycle: Lifecycle
  /** The snapshot in force. A turn keeps the one it began with; see `Agent`. */
  readonly snapshot: () => Snapshot
  readonly onSnapshot: (listener: (snapshot: Snapshot) => void) => () => void
  /** The files of an agent; undefined for an unknown name. */
  readonly workspaceOf: (agent: string) => AgentWorkspace | undefined
  /** The guards in force. Throws before the first configuration is applied. */
  readonly guards: () => Guards
  /** The engine of procedures; undefined until it has started. */
  readonly sops: () => Sops | undefined
  /** Offers features services that start after them. */
  readonly offer: (services: Partial<Services>) => void
  readonly services: Readonly<Partial<Services>>
  /** Validates a new configuration text and applies it. A text that is not valid changes nothing, and rejects. */
  readonly reload: (text: string) => Promise<Reload>
}

/** `closed` aborts once the runtime is closed. No feature is built before the first configuration is applied. */
export function openFeatures(opened: Opened, inForce: InForce, options: RuntimeOptions, closed: AbortSignal): Features {
  const services: Partial<Services> = {}
  const lifecycle = createLifecycle(opened, inForce, { options, closed, services })
  const { features } = options
  return {
    lifecycle,
    snapshot: lifecycle.snapshot,
    onSnapshot: lifecycle.onSnapshot,
    workspaceOf: (agent) => lifecycle.agents().get(agent)?.workspace,
    guards() {
      const guards = lifecycle.guards()
      if (!guards) throw new Error('no guards before the first configuration is applied')
      return guards
    },
    sops: () => services.sops,
    offer: (offered) => void Object.assign(services, offered),
    services,
    async reload(text) {
      const next = await parseConfig(options, text)
      // Features of both configurations may log: new ones while they are built, replaced ones until their last turn ends.
      inForce.secrets = [...configuredSecrets(next, features), ...configuredSecrets(inForce.config(), features)]
      return lifecycle.apply(next)
    },
  }
}

interface LifecycleParts {
  readonly options: RuntimeOptions
  readonly closed: AbortSignal
  readonly services: Readonly<Partial<Services>>
}

function createLifecycle(opened: Opened, inForce: InForce, { options, closed, services }: LifecycleParts): Lifecycle {
  const { env, configFile, only, needsModel } = options
  const hasFeatures = only === undefined || only === 'features'
  const { clock, log, store, bus, dataDir, traces } = opened
  const outbound = createOutboundFetch(options.fetch)
  const started = Promise.withResolvers<void>()
  closed.addEventListener('abort', () => started.resolve(), { once: true })
  const guards = (config: LoadedConfig): Guards =>
    createGuards(config, {
      dataDir,
      clock,
      log,
      signal: closed,
      started: started.promise,
      sandboxes: () => lifecycle.snapshot().instances.flatMap(({ parts }) => parts.sandboxes ?? []),
    })
  const lifecycle: Lifecycle = new Lifecycle({
    agents: (config) => createAgents(config, { dataDir, configFile }),
    features: hasFeatures ? options.features : [],
    needsModel: needsModel ?? hasFeatures,
    env,
    log: log.child('features'),
    host: { clock, log, store, secrets: openSecretBox(dataDir), events: bus, dataDir, traces, fetch: traces.traced(outbound) },
    service: (name) => services[name],
    guards,
  })
  const reported = new WeakSet<Instance>()
  lifecycle.onSnapshot((snapshot) => {
    inForce.snapshot = snapshot
    started.resolve()
    log.setLevel(logLevelOf(options, snapshot.config))
    reportFailures(snapshot, reported, opened)
  })
  return lifecycle
}

/** Emits an event for each failed feature, once for each build of it. */
function reportFailures({ instances }: Snapshot, reported: WeakSet<Instance>, { bus }: Pick<Opened, 'bus'>): void {
  for (const instance of instances) {
    if (instance.state() !== 'failed' || reported.has(instance)) continue
    reported.add(instance)
    bus.emit({ type: 'feature_failed', feature: instance.feature.id, error: instance.reason() ?? '' })
  }
}
