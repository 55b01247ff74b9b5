/** Assembles one runtime: configuration, store, features and agent; everything but HTTP. */
import { randomBytes } from 'node:crypto'
import { type Agent, type Approver, createAgent, createScrub } from '@sluice/agent'
import { createApprovals, createToolApprover } from '@sluice/approvals'
import type { LoadedConfig } from '@sluice/config'
import {
  agentSection,
  approvalsSection,
  type ConfigSource,
  configuredSecrets,
  costSection,
  logSection,
  parseConfig,
  policySection,
  readConfigText,
  readTomlFile,
} from '@sluice/config'
import type { DeliveryQueues } from '@sluice/delivery'
import { type Clients, createClients } from '@sluice/delivery'
import { LaneQueue, systemClock } from '@sluice/kit'
import type { Clock, Observation, Services, Vitals } from '@sluice/sdk'
import { openDataDir } from '@sluice/store'
import { openSecretBox } from '@sluice/store/secret-box'
import { createEventBus } from './events/event-bus.ts'
import { createGuards, type Guards } from './features/guards.ts'
import { Lifecycle, type Reload } from './features/lifecycle.ts'
import { observationOf } from './features/observe-events.ts'
import { outboundFetch } from './fetch/outbound-fetch.ts'
import { createTraceScope, type TraceScope } from './fetch/trace-scope.ts'
import { createHealthWatch } from './health.ts'
import { createHideSecrets } from './hide-secrets.ts'
import { type ComponentLogger, createLogger } from './log/log.ts'
import { newToken } from './pairing.ts'
import { agreeAtUpgrade } from './procedures/agree-at-upgrade.ts'
import { createLiveView, type Runtime } from './runtime.ts'
import type { SandboxChoice } from './sandbox/select-sandbox.ts'

export { unknownToolNames } from './features/unknown-tool-names.ts'

export interface RuntimeOptions extends ConfigSource {
  readonly profile: string
  readonly version: string
  /** True: only warnings and errors are logged, whatever `[log] level` says. */
  readonly quiet?: boolean
  /** Asks a person about tool calls where the turn itself brings nobody to ask. */
  readonly approve?: Approver
  readonly clock?: Clock
  /** True: a data directory that lost its database may start with an empty one. */
  readonly newDatabase?: boolean
  /** True: the caller holds the lock of the data directory. */
  readonly locked?: boolean
}

export interface OpenRuntime extends Runtime {
  readonly lifecycle: Lifecycle
  readonly clients: Clients
  /** Where turns and messages wait; at most `[agent] max_concurrent_turns` run at once. */
  readonly lanes: LaneQueue
  readonly traces: TraceScope
  readonly log: ComponentLogger
  /** The configuration in force. */
  config(): LoadedConfig
  readonly dataDir: string
  /** The text the first configuration was read from. */
  readonly configText: string
  guards(): Guards
  /** Validates a new text and applies it; a text that does not validate changes nothing and rejects. */
  reload(text: string): Promise<Reload>
  /** Subscribers of each kind, for the vitals; the HTTP side counts them. */
  readonly subscribers: { sse: number; ws: number; dropped: number }
  /** Gives features services that start later than they do. */
  offer(services: Partial<Services>): void
  /** Takes the configured secrets, and what looks like one, out of a text. */
  scrub(text: string): string
  /** Closes agent, features and store, in that order. Idempotent. */
  close(drainMs?: number): Promise<void>
}

const DRAIN_MS = 10_000

export async function openRuntime(options: RuntimeOptions): Promise<OpenRuntime> {
  const { features, dataDir, clock = systemClock, env } = options
  const configText = await readConfigText(options.configFile)
  let config = await parseConfig(options, configText)
  let secrets = configuredSecrets(config, features)
  const levelOf = (loaded: LoadedConfig) => (options.quiet ? 'warn' : loaded.core(logSection).level)
  // A person reads the lines of a command, also where they are piped; only a daemon's go to a collector by default.
  const formatOf = (loaded: LoadedConfig) => {
    const { format } = loaded.core(logSection)
    return options.quiet && format === 'auto' ? 'text' : format
  }
  const log = createLogger({
    secrets: () => secrets,
    level: levelOf(config),
    format: formatOf(config),
    stream: process.stderr,
    clock,
  })
  const stop = new AbortController()
  let observe: (observation: Observation) => void = () => {}
  let isTracing = false
  const traces = createTraceScope(() => isTracing)
  const store = openDataDir({
    dataDir,
    newDatabase: options.newDatabase ?? false,
    locked: options.locked ?? false,
    clock,
    log: log.child('store'),
    onCommit: (units, tookMs) => observe({ kind: 'commit', units, tookMs }),
  })
  const hideSecrets = createHideSecrets(() => secrets)
  const bus = createEventBus({ clock, hide: hideSecrets, run: randomBytes(6).toString('base64url') })
  bus.subscribe(({ envelope }) => {
    const observation = observationOf(envelope)
    if (observation) observe(observation)
  })
  const clients = createClients()
  const subscribers = { sse: 0, ws: 0, dropped: 0 }
  const delivery: DeliveryQueues = {
    load: () => ({ messages: 0, replies: 0 }),
    ages: () => ({ messageSecs: 0, replySecs: 0 }),
    wake: () => {},
    queued: () => {},
  }
  const startedAtMs = clock.nowMs()
  let guards: Guards | undefined

  const vitals = (): Vitals => {
    const { running, queued, sessions } = agent.load()
    const { messages, replies } = delivery.load()
    const { messageSecs, replySecs } = delivery.ages()
    return {
      startedAtMs,
      turnsRunning: running,
      turnsQueued: queued,
      sessionsActive: sessions,
      sseClients: subscribers.sse,
      wsClients: subscribers.ws,
      messagesPending: messages,
      repliesPending: replies,
      oldestMessageSecs: messageSecs,
      oldestReplySecs: replySecs,
      commitsQueued: store.pending(),
      eventsDropped: subscribers.dropped,
      sandbox: measuredSandbox(guards?.chosenSandbox()),
    }
  }
  const health = createHealthWatch({
    clock,
    store,
    bus,
    snapshot: () => lifecycle.snapshot(),
    sandbox: () => guards?.chosenSandbox(),
  })
  const services: Partial<Services> = {
    memory: store.memory,
    vitals,
    async audit({ by, detail }) {
      await store.sops.record([{ kind: 'device_write', atMs: clock.nowMs(), sop: '', run: null, step: null, by, reason: null, detail }])
    },
    readToml: readTomlFile,
    pairing: {
      revokedAmong: (devices) => store.devices.revokedAmong(devices),
      originOf: async (device) => (await store.devices.list()).find(({ id }) => id === device)?.issuedBy ?? device,
    },
    async issueToken(asked) {
      const { token, device: deviceId } = await newToken(store, asked, clock)
      bus.emit({ type: 'device_paired', device_id: deviceId, name: asked.name })
      return { token, deviceId }
    },
  }
  const lifecycle = new Lifecycle({
    features,
    env,
    log: log.child('features'),
    fetch: traces.traced(outboundFetch),
    host: { clock, log, store, secrets: openSecretBox(dataDir), events: bus, dataDir, traces },
    service: (name) => services[name],
    guards(next) {
      guards = createGuards(next, {
        dataDir,
        configFile: options.configFile,
        clock,
        log,
        signal: stop.signal,
        sandboxes: () => lifecycle.snapshot().instances.flatMap(({ parts }) => parts.sandboxes ?? []),
      })
      return guards
    },
  })
  lifecycle.onSnapshot((snapshot) => {
    config = snapshot.config
    observe = snapshot.observe
    isTracing = snapshot.wantsTraces
    log.setLevel(levelOf(snapshot.config))
  })
  const approvals = createApprovals({
    store: store.approvals,
    bus,
    clock,
    log: log.child('approvals'),
    channels: () => lifecycle.snapshot().channels,
    features: () => lifecycle.snapshot().features,
    targets: () => config.core(approvalsSection).channels,
    queued: (replies) => delivery.queued(replies),
  })
  const askInChats = createToolApprover({
    approvals,
    inbox: store.inbox,
    run: store.sops.get,
    timeoutSecs: () => config.core(approvalsSection).tool_timeout_secs,
  })
  const lanes = new LaneQueue({ clock, permits: () => config.core(agentSection).max_concurrent_turns })
  const agent: Agent = createAgent({
    store,
    lanes,
    lease: lifecycle.lease,
    events: bus,
    clock,
    log: log.child('agent'),
    config: () => ({ agent: config.core(agentSection), cost: config.core(costSection), policy: config.core(policySection) }),
    secrets: () => secrets,
    mintClient: clients.ofCaller,
    approve: options.approve ?? askInChats,
    within: traces.within,
  })

  let closing: Promise<void> | undefined
  const close = async (drainMs: number) => {
    const drained = lifecycle.drain()
    await approvals.stop()
    await agent.drain(drainMs)
    await drained
    await lifecycle.close()
    stop.abort()
    await store.close()
  }
  try {
    await agreeAtUpgrade({ store, config, dataDir, clock, log: log.child('sop') })
    await lifecycle.apply(config)
  } catch (error) {
    await store.close()
    throw error
  }
  return {
    version: options.version,
    profile: options.profile,
    startedAtMs,
    store,
    agent,
    bus,
    clock,
    log,
    lifecycle,
    clients,
    lanes,
    traces,
    subscribers,
    approvals,
    delivery,
    scrub: createScrub(() => secrets),
    hideSecrets,
    config: () => config,
    dataDir,
    configText,
    guards: () => guards ?? unreachable(),
    snapshot: lifecycle.snapshot,
    onSnapshot: lifecycle.onSnapshot,
    live: createLiveView(lifecycle.snapshot),
    sops: () => services.sops,
    health,
    offer: (offered) => void Object.assign(services, offered),
    vitals,
    async reload(text) {
      const next = await parseConfig(options, text)
      // What is built for it speaks before it is in force, and what it replaces until its last turn has ended.
      secrets = [...configuredSecrets(next, features), ...configuredSecrets(config, features)]
      const inForce = guards
      const outcome = await lifecycle.apply(next).catch((error: unknown) => {
        guards = inForce
        throw error
      })
      return outcome
    },
    close: (drainMs = DRAIN_MS) => (closing ??= close(drainMs)),
  }
}

const unreachable = (): never => {
  throw new Error('the runtime applies a configuration before anybody can ask')
}

/** The choice in one sentence: what was measured of the backend, or why there is none. */
function measuredSandbox(choice: SandboxChoice | undefined): Vitals['sandbox'] {
  if (!choice) return null
  const { sandbox, probes, warning } = choice
  const measured = probes.find(({ name }) => name === sandbox.name)?.detail
  return { backend: sandbox.name, detail: warning ?? measured ?? 'commands run without a sandbox: it is switched off' }
}
