/** Opens one runtime: configuration, store, features and agent; everything but HTTP. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Admission, type Agent, type Approver, createAgent, createScrub, createTurnQueue, Shares } from '@sluice/agent'
import { ApprovalRegistry, createToolApprover } from '@sluice/approvals'
import { readRecord } from '@sluice/backup'
import {
  agentSection,
  approvalsSection,
  type ConfigSource,
  clusterSection,
  configuredAgents,
  configuredSecrets,
  gatewaySection,
  joinSharedConfig,
  type LoadedConfig,
  limitsOf,
  logSection,
  operatorsOf,
  parseConfig,
  readConfigText,
  readNodeText,
  sharesOf,
} from '@sluice/config'
import { type Clients, createClients, withMessage } from '@sluice/delivery'
import { type LaneQueue, OpenSteps, systemClock } from '@sluice/kit'
import { ShardOwnership } from '@sluice/ownership'
import {
  type Backlog,
  type Clock,
  type Logger,
  MAIN_AGENT,
  type Observation,
  type Secret,
  type Services,
  type ShardRange,
  type SharedConfig,
  type Sops,
  type Store,
  type Vitals,
} from '@sluice/sdk'
import { ProcedureFiles } from '@sluice/sop/procedure-files'
import { type DataDirLock, openDataDir, openStore } from '@sluice/store'
import { openSecretBox } from '@sluice/store/secret-box'
import { readBacklog } from './backlog.ts'
import { createCoreServices } from './core-services.ts'
import type { Check } from './doctor/check.ts'
import { createEventBus, type EventBus } from './events/event-bus.ts'
import { createAgents } from './features/agents.ts'
import { CommandRuns } from './features/command-runs.ts'
import { createGuards, type Guards } from './features/guards.ts'
import type { Instance } from './features/instance.ts'
import { Lifecycle, type Reload } from './features/lifecycle.ts'
import { observationOf } from './features/observers.ts'
import type { Snapshot } from './features/snapshot.ts'
import { createOutboundFetch, createTraceScope, type TraceScope } from './fetch/outbound-fetch.ts'
import { createHealthWatch, type HealthWatch, sandboxState } from './health.ts'
import { createHideSecrets, type HideSecrets } from './hide-secrets.ts'
import { LateDelivery } from './late-delivery.ts'
import { type ComponentLogger, createLogger, type LogLevel } from './log/log.ts'
import { quietRepeats } from './log/quiet-repeats.ts'
import { RecentLog } from './log/recent-log.ts'
import { type OpenBackend, openBackend } from './open-backend.ts'
import { agreeAtUpgrade } from './procedures/agree-at-upgrade.ts'
import { sopSettings } from './procedures/sop-settings.ts'
import type { Runtime } from './runtime.ts'
import type { SandboxChoice } from './sandbox/select-sandbox.ts'
import { createSettings, type Settings } from './settings.ts'
import { OwnedFiles } from './workspace/owned-files.ts'

export { unknownToolNames } from './features/operator-warnings.ts'

export interface RuntimeOptions extends ConfigSource {
  readonly profile: string
  readonly version: string
  /** True: only warnings and errors are logged, whatever `[log] level` says. */
  readonly quiet?: boolean
  /** False: no turn will run, so no provider is needed. Default: true, if features are built. */
  readonly needsModel?: boolean | undefined
  /** Gets the log lines; default: standard error. Secrets are masked before. */
  readonly logger?: Logger | undefined
  /** Sends the requests to platforms and models; default: Node's `fetch`. Addresses that a model names are requested without it. */
  readonly fetch?: typeof fetch | undefined
  /** Decides tool calls that need an approval, where the turn's own caller cannot; default: people in chats are asked. */
  readonly approve?: Approver
  readonly clock?: Clock
  /** True: a data directory whose database is gone may start with an empty one. */
  readonly newDatabase?: boolean
  /** The shards that this process owns once it starts work; all unless given. */
  readonly shards?: readonly ShardRange[]
  /** The lock of the data directory, if the caller holds it. */
  readonly lock?: DataDirLock
  /**
   * `store`: features are not built, so that nothing is connected, offered or sent, and the configuration is not read: every
   * setting has its default. `config`: the same, with the configuration of the file. `features`: the features of the configuration on
   * an empty store of their own, so that the database of the data directory is not opened. Default: everything.
   */
  readonly only?: 'store' | 'config' | 'features' | undefined
}

const DRAIN_MS = 10_000

/** Rejects if the configuration is not valid, or the store or a provider cannot be used; nothing stays open then. */
export async function openRuntime(options: RuntimeOptions): Promise<OpenRuntime> {
  const read = options.only === 'store' ? undefined : await readSource(options)
  const configText = read?.text ?? ''
  const source = options.only === 'store' ? { ...options, env: {}, configValues: undefined } : options
  const own = await parseConfig(source, configText)
  const backend = await openBackend(options, own)
  try {
    const joined = await joinCluster(options, own, backend?.store)
    if (!joined) return await start(new OpenRuntime(options, configText, own, backend, read?.version), own, options)
    const config = await parseConfig(options, joined.text)
    const runtime = new OpenRuntime({ ...options, shared: joined.shared }, joined.text, config, backend, joined.version)
    logJoined(runtime, joined)
    return await start(runtime, config, options)
  } catch (error) {
    await backend?.store.close()
    throw error
  }
}

/** The text of the configuration, and its version where it is that of a cluster. */
async function readSource(options: RuntimeOptions): Promise<{ readonly text: string; readonly version: number }> {
  if (options.shared && !options.configValues) return readNodeText(options, options.shared)
  return { text: options.configValues ? '' : await readConfigText(options.configFile), version: 0 }
}

interface Joined extends Awaited<ReturnType<typeof joinSharedConfig>> {
  readonly shared: SharedConfig
}

/** Resolves to the configuration of the cluster; to undefined where the node has its own. */
async function joinCluster(options: RuntimeOptions, own: LoadedConfig, store: Store | undefined): Promise<Joined | undefined> {
  const { cluster } = store ?? {}
  const isOwn = options.configValues !== undefined || options.only !== undefined || own.core(clusterSection).config === 'file'
  if (!cluster || isOwn) return undefined
  return { ...(await joinSharedConfig(options, cluster.config, cluster.node)), shared: cluster.config }
}

function logJoined({ log }: OpenRuntime, { version, isFirst, ignored }: Joined): void {
  if (isFirst) log.info('the cluster has its configuration from the file of this node', { version })
  if (ignored.length > 0)
    log.warn('the configuration of the cluster is in force: these sections of the file are ignored on this node', { version, ignored })
}

async function start(runtime: OpenRuntime, config: LoadedConfig, options: RuntimeOptions): Promise<OpenRuntime> {
  const { store, dataDir, clock, log, lifecycle } = runtime
  try {
    if (options.only === undefined || options.only === 'config')
      await agreeAtUpgrade({ store, config, dataDir, clock, log: log.child('sop') })
    if (options.only === undefined)
      await runtime.files.assignFormer([...configuredAgents(config, dataDir).values()].map(({ name, workspace: root }) => ({ name, root })))
    await lifecycle.apply(config)
    if (options.only === undefined) await runtime.bus.start()
  } catch (error) {
    await store.close()
    throw error
  }
  return runtime
}

/** Use `openRuntime`: before its first configuration is applied, an instance has no snapshot. */
export class OpenRuntime implements Runtime {
  readonly version: string
  readonly profile: string
  readonly dataDir: string
  /** The text that the first configuration was read from. */
  readonly configText: string
  /** The configuration of the cluster and the version that `configText` is made of, where the node has none of its own. */
  readonly sharedConfig: { readonly config: SharedConfig; readonly version: number } | undefined
  readonly startedAtMs: number
  readonly clock: Clock
  readonly log: ComponentLogger
  readonly traces: TraceScope
  readonly store: Store
  readonly hideSecrets: HideSecrets
  readonly bus: EventBus
  readonly clients: Clients
  /** Turns and messages wait here; at most `[agent] max_concurrent_turns` run at once. */
  readonly lanes: LaneQueue
  /** What this process owns: nothing until the daemon starts it. */
  readonly ownership: ShardOwnership
  readonly delivery = new LateDelivery()
  readonly recentLog = new RecentLog()
  readonly settings: Settings
  readonly lifecycle: Lifecycle
  readonly health: HealthWatch
  /** The steps of a stop that have begun and not ended. */
  readonly stopSteps = new OpenSteps()
  readonly approvals: ApprovalRegistry
  readonly procedures: ProcedureFiles
  readonly admission: Admission
  readonly shares: Shares
  readonly agent: Agent
  readonly commands: CommandRuns
  /** Subscribers of each kind, for the vitals; the HTTP side counts them. */
  readonly subscribers = { sse: 0, ws: 0, dropped: 0 }
  /** Masks the configured secrets, and text that looks like a credential. */
  readonly scrub: (text: string) => string

  readonly #options: RuntimeOptions
  readonly #firstConfig: LoadedConfig
  readonly #storeLog: Logger
  readonly #services: Partial<Services>
  /** Aborts once the runtime is closed. */
  readonly #closed = new AbortController()
  #secrets: readonly Secret[]
  readonly #reportedFailures = new WeakSet<Instance>()
  #snapshot: Snapshot | undefined
  #closing: Promise<void> | undefined

  constructor(options: RuntimeOptions, configText: string, config: LoadedConfig, backend?: OpenBackend, sharedVersion = 0) {
    this.#options = options
    this.#firstConfig = config
    this.#secrets = configuredSecrets(config, options.features)
    this.version = options.version
    this.profile = options.profile
    this.dataDir = options.dataDir
    this.configText = configText
    this.sharedConfig = options.shared && { config: options.shared, version: sharedVersion }
    this.clock = options.clock ?? systemClock
    this.startedAtMs = this.clock.nowMs()
    this.log = this.#createLogger(config)
    this.traces = createTraceScope(() => this.#snapshot?.wantsTraces ?? false)
    this.#storeLog = quietRepeats(this.log.child('store'), this.clock)
    this.store = backend ? this.#useBackend(backend) : this.#openStore()
    this.ownership = new ShardOwnership({
      store: this.store,
      clock: this.clock,
      log: this.#storeLog,
      ...(options.shards && { ranges: options.shards }),
    })
    this.files = new OwnedFiles({ store: this.store, dataDir: this.dataDir, clock: this.clock, log: this.#storeLog })
    this.scrub = createScrub(() => this.#secrets)
    this.hideSecrets = createHideSecrets(() => this.#secrets)
    this.bus = this.#createBus()
    this.clients = createClients()
    this.#services = createCoreServices(this)
    this.lifecycle = this.#createLifecycle()
    this.health = this.#createHealth()
    this.approvals = this.#createApprovals()
    this.procedures = new ProcedureFiles({
      settings: () => sopSettings(this.config(), this.dataDir),
      keyValue: this.store.keyValue('sop'),
      clock: this.clock,
    })
    const permits = () => this.config().core(agentSection).max_concurrent_turns
    this.lanes = createTurnQueue(this.clock, permits)
    this.admission = new Admission({
      store: this.store.admissions,
      clock: this.clock,
      events: this.bus,
      limitsOf: (client) => limitsOf(this.config(), client),
    })
    this.shares = new Shares({
      clock: this.clock,
      events: this.bus,
      sharesOf: (client) => sharesOf(this.config(), client),
      running: () => this.lanes.used(),
    })
    this.agent = this.#createAgent()
    this.commands = this.#createCommands()
    this.settings = createSettings(options)
  }

  readonly snapshot = (): Snapshot => this.lifecycle.snapshot()

  readonly files: OwnedFiles

  readonly workspaceOf = (agent: string) => this.lifecycle.agents().get(agent)?.workspace

  readonly onSnapshot = (listener: (snapshot: Snapshot) => void): (() => void) => this.lifecycle.onSnapshot(listener)

  /** The configuration in force. */
  readonly config = (): LoadedConfig => this.#snapshot?.config ?? this.#firstConfig

  /** The guards in force. Throws before the first configuration is applied. */
  readonly guards = (): Guards => {
    const guards = this.lifecycle.guards()
    if (!guards) throw new Error('no guards before the first configuration is applied')
    return guards
  }

  readonly sops = (): Sops | undefined => this.#services.sops

  /** Offers features services that start after them. */
  readonly offer = (services: Partial<Services>): void => void Object.assign(this.#services, services)

  /** Validates a new configuration text and applies it. A text that is not valid changes nothing, and rejects. */
  readonly reload = async (text: string): Promise<Reload> => {
    const next = await parseConfig(this.#options, text)
    const { features } = this.#options
    // Features of both configurations may log: new ones while they are built, replaced ones until their last turn ends.
    this.#secrets = [...configuredSecrets(next, features), ...configuredSecrets(this.config(), features)]
    return this.lifecycle.apply(next)
  }

  readonly vitals = (): Vitals => {
    const { running, queued, sessions } = this.agent.load()
    const { messages, replies } = this.delivery.load()
    const { messageSecs, replySecs } = this.delivery.ages()
    const { channels, links, store, config, provider } = this.health.look()
    const backups = readRecord(this.dataDir)
    return {
      version: this.version,
      profile: this.profile,
      startedAtMs: this.startedAtMs,
      turnsRunning: running,
      turnsQueued: queued,
      sessionsActive: sessions,
      sseClients: this.subscribers.sse,
      wsClients: this.subscribers.ws,
      messagesPending: messages,
      repliesPending: replies,
      oldestMessageSecs: messageSecs,
      oldestReplySecs: replySecs,
      commitsQueued: this.store.pending(),
      ...this.#clusterVitals(),
      eventsDropped: this.subscribers.dropped,
      channels,
      links,
      lastBackupMs: backups.last && Date.parse(backups.last.at),
      faults: {
        store: store.state === 'failing',
        config: config.state === 'rejected',
        provider: provider.state === 'failing',
        backup: backups.failure !== null,
      },
      sandbox: measuredSandbox(this.#sandboxChoice()),
    }
  }

  #clusterVitals(): Pick<Vitals, 'cluster'> {
    const { cluster } = this.store
    if (!cluster) return {}
    const { workers, beatAgeMs } = cluster.seen()
    const { share: shardsShare = 0 } = this.ownership
    const shardsOwned = this.ownership.leases().held
    return { cluster: { name: cluster.name, node: cluster.node, workers, shardsOwned, shardsShare, beatAgeSecs: beatAgeMs / 1000 } }
  }

  readonly backlog = (): Promise<Backlog> => readBacklog(this.store, this.clock.nowMs())

  readonly checks = async (): Promise<Check[]> => (await import('./doctor/doctor.ts')).checkKept(this)

  /** Drains and closes features, agent and store. Turns have `drainMs` to end. Idempotent. */
  readonly close = (drainMs = DRAIN_MS): Promise<void> => {
    this.#closing ??= this.#close(drainMs)
    return this.#closing
  }

  async #close(drainMs: number): Promise<void> {
    // Features drain at once: a motor must not move for as long as turns may take to end.
    const drained = this.stopSteps.during('drain of features', this.lifecycle.drain())
    await this.stopSteps.during('approvals', this.approvals.stop())
    await this.stopSteps.during('turns', this.agent.drain(drainMs))
    await drained
    await this.stopSteps.during('end of features', this.lifecycle.close())
    this.#closed.abort()
    await this.stopSteps.during('leases', this.ownership.stop())
    await this.stopSteps.during('store', this.store.close())
  }

  #createLogger(config: LoadedConfig): ComponentLogger {
    const { format } = config.core(logSection)
    return createLogger({
      secrets: () => this.#secrets,
      level: this.#logLevel(config),
      // A person reads the output of a command, also where it is piped; by default, only the daemon's log goes to a collector.
      format: this.#options.quiet && format === 'auto' ? 'text' : format,
      stream: this.#options.logger ?? process.stderr,
      clock: this.clock,
      onLine: this.recentLog.add,
    })
  }

  #logLevel(config: LoadedConfig): LogLevel {
    return this.#options.quiet ? 'warn' : config.core(logSection).level
  }

  #useBackend(backend: OpenBackend): Store {
    backend.log = this.#storeLog
    backend.onCommit = (units, tookMs) => this.#observe({ kind: 'commit', units, tookMs })
    return backend.store
  }

  #openStore(): Store {
    const { newDatabase = false, lock, only } = this.#options
    if (only === 'features') return openEmptyStore(this.clock, this.log.child('store'))
    return openDataDir({
      dataDir: this.dataDir,
      newDatabase,
      lock,
      clock: this.clock,
      log: this.log.child('store'),
      onCommit: (units, tookMs) => this.#observe({ kind: 'commit', units, tookMs }),
    })
  }

  #createBus(): EventBus {
    const { cluster } = this.store
    const run = cluster?.name ?? this.recentLog.run
    const bus = createEventBus({ clock: this.clock, hide: this.hideSecrets, run, shared: cluster?.events })
    bus.observe((event) => {
      const observation = observationOf(event)
      if (observation) this.#observe(observation)
    })
    return bus
  }

  #createLifecycle(): Lifecycle {
    const { env, configFile, only, needsModel } = this.#options
    const hasFeatures = only === undefined || only === 'features'
    const features = hasFeatures ? this.#options.features : []
    const { clock, log, store, bus, dataDir, traces } = this
    const outbound = createOutboundFetch(this.#options.fetch)
    const started = Promise.withResolvers<void>()
    this.#closed.signal.addEventListener('abort', () => started.resolve(), { once: true })
    const lifecycle = new Lifecycle({
      agents: (config) => createAgents(config, { dataDir, configFile }),
      features,
      needsModel: needsModel ?? hasFeatures,
      env,
      log: log.child('features'),
      host: { clock, log, store, secrets: openSecretBox(dataDir), events: bus, dataDir, traces, fetch: traces.traced(outbound) },
      service: (name) => this.#services[name],
      guards: (config) =>
        createGuards(config, {
          dataDir,
          clock,
          log,
          signal: this.#closed.signal,
          started: started.promise,
          sandboxes: () => this.snapshot().instances.flatMap(({ parts }) => parts.sandboxes ?? []),
        }),
    })
    lifecycle.onSnapshot((snapshot) => {
      this.#snapshot = snapshot
      started.resolve()
      this.log.setLevel(this.#logLevel(snapshot.config))
      this.#reportFailures(snapshot)
    })
    return lifecycle
  }

  /** Emits an event for each failed feature, once for each build of it. */
  #reportFailures({ instances }: Snapshot): void {
    for (const instance of instances) {
      if (instance.state() !== 'failed' || this.#reportedFailures.has(instance)) continue
      this.#reportedFailures.add(instance)
      this.bus.emit({ type: 'feature_failed', feature: instance.feature.id, error: instance.reason() ?? '' })
    }
  }

  #createHealth(): HealthWatch {
    const { clock, store, bus, snapshot } = this
    return createHealthWatch({
      clock,
      store,
      bus,
      snapshot,
      leases: () => this.ownership.leases(),
      node: store.cluster?.node ?? null,
      sandbox: () => this.#sandboxChoice(),
    })
  }

  #createApprovals(): ApprovalRegistry {
    return new ApprovalRegistry({
      store: this.store.approvals,
      ownership: this.ownership,
      notices: this.store.cluster?.notices,
      inbox: this.store.inbox,
      bus: this.bus,
      clock: this.clock,
      log: this.log.child('approvals'),
      channels: () => this.snapshot().channels,
      features: () => this.snapshot().features,
      targets: () => this.config().core(approvalsSection).channels,
      operators: (channel) => operatorsOf(this.config(), channel),
      texts: () => this.config().core(gatewaySection).texts,
      queued: this.delivery.queued,
    })
  }

  #createAgent(): Agent {
    const askInChats = createToolApprover({
      approvals: this.approvals,
      inbox: {
        get: async (number) => {
          const entry = await this.store.inbox.get(number)
          return entry && withMessage(this.snapshot().channels, entry)
        },
      },
      run: this.store.sops.get,
      hasOperator: () => this.#hasOperator(),
      timeoutSecs: () => this.config().core(approvalsSection).tool_timeout_secs,
      texts: () => this.config().core(gatewaySection).texts,
    })
    return createAgent({
      store: this.store,
      cluster: this.ownership.ownsAll ? undefined : this.store.cluster,
      ownership: this.ownership,
      lanes: this.lanes,
      pinRegistry: this.lifecycle.pin,
      events: this.bus,
      clock: this.clock,
      log: this.log.child('agent'),
      config: (agent) => this.lifecycle.agents().get(agent),
      secrets: () => this.#secrets,
      mintClient: this.clients.ofCaller,
      admission: this.admission,
      shares: this.shares,
      approve: this.#options.approve ?? askInChats,
      within: this.traces.within,
    })
  }

  /** Whether an operator could answer on the dashboard. */
  async #hasOperator(): Promise<boolean> {
    if (!this.config().core(gatewaySection).require_pairing) return true
    const nowMs = this.clock.nowMs()
    const devices = await this.store.devices.list()
    return devices.some(({ role, expiresAtMs }) => role === 'operator' && (expiresAtMs === null || expiresAtMs > nowMs))
  }

  #createCommands(): CommandRuns {
    return new CommandRuns({
      snapshot: this.snapshot,
      pin: () => this.lifecycle.pin(MAIN_AGENT).release,
      addToConfig: async (addition) => (await import('@sluice/config/edit')).addToConfig(this.#options, addition),
      setInConfig: async (values) => (await import('@sluice/config/edit')).setInConfig(this.#options, values),
      audit: async (record) => this.#services.audit?.(record),
      log: this.log.child('features'),
    })
  }

  #observe(observation: Observation): void {
    this.#snapshot?.observe(observation)
  }

  #sandboxChoice(): SandboxChoice | undefined {
    return this.lifecycle.guards()?.sandbox.latest()
  }
}

/** Opens a store in a folder of its own, which its `close` removes. */
function openEmptyStore(clock: Clock, log: ComponentLogger): Store {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const store = openStore({ file: join(folder, 'sluice.db'), clock, log })
  const close = async (): Promise<void> => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { ...store, close }
}

/** The choice in one sentence: the measurement of the backend, or the reason why there is none. */
function measuredSandbox(choice: SandboxChoice | undefined): Vitals['sandbox'] {
  if (!choice) return null
  const { sandbox, probes, warning } = choice
  const measured = probes.find(({ name }) => name === sandbox.name)?.detail
  return {
    backend: sandbox.name,
    state: sandboxState(choice),
    detail: warning ?? measured ?? 'commands run without a sandbox: it is switched off',
  }
}
