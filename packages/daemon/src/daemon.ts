/** The daemon: one runtime with its HTTP server, procedures and deliveries. */
import { gatewaySection, isLoopbackHost, requireSignatures } from '@sluice/config'
import { type Deliveries, Overheard } from '@sluice/delivery'
import { type Auth, createAuth } from '@sluice/http'
import type { ProcessControl, Reloaded } from '@sluice/http/answers'
import { HttpSide } from '@sluice/http/listen'
import { operator } from '@sluice/http/operator'
import { endsWithin, every } from '@sluice/kit'
import { logWarnings, operatorWarnings, REFUSING, startRetention, tellDueNotices } from '@sluice/runtime'
import type { ApiCall } from '@sluice/sdk'
import { lockDataDirAfterCommands } from '@sluice/store'
import { startBackups } from './backup-schedule.ts'
import { ConfigReload } from './config-reload.ts'
import { hashWebhookSecret } from './hash-webhook-secret.ts'
import { logTurn } from './log-activity.ts'
import type { Procedures } from './procedures.ts'
import { type OpenRuntime, openRuntime, type RuntimeOptions } from './runtime/open-runtime.ts'
import { startWork } from './start-work.ts'
import { DRAIN_MS, STOP_MS_MAX } from './stop-times.ts'
import { watchClock } from './watch-clock.ts'

export interface DaemonOptions extends RuntimeOptions, ListenAddress {
  /** False: no port is bound until `listen` is called. Default: true. */
  readonly listens?: boolean
  /** The command that starts this program, for the backups of `[backup] schedule`: a file and its first arguments. */
  readonly program?: readonly string[]
  /** Ends or restarts the process, for the commands that ask for it; without it, both are refused. */
  readonly control?: Omit<ProcessControl, 'reload'>
}

export interface Daemon {
  /** The address of the first port; empty while none is bound. */
  readonly url: string
  readonly runtime: OpenRuntime
  readonly http: HttpSide
  /** Binds a port. Resolves to its URL. Rejects with `conflict` when it is in use. */
  listen(address: ListenAddress): Promise<string>
  /** Calls a route of the API as the operator. Resolves to its answer; rejects as the route does. */
  call(request: ApiCall): Promise<unknown>
  /** Reads the configuration file again at once. A file that is not valid changes nothing. Never rejects. */
  reload(): Promise<Reloaded>
  /**
   * Stops accepting requests, drains for at most ten seconds, and closes. Idempotent. Resolves after `STOP_MS_MAX` at the latest:
   * the log then names the steps that have not ended, which end with the process.
   */
  stop(): Promise<void>
}

/** Absent members are taken from `[gateway]`. */
export interface ListenAddress {
  readonly host?: string | undefined
  /** 0 chooses a free port. */
  readonly port?: number | undefined
  /** The descriptor of a listening socket that a service manager passes. Without `host` and `port`, it replaces `[gateway]`'s. */
  readonly socket?: number | undefined
}

/** How long a stop waits for the release of leases whose work has ended; another node takes over what is left. */
const RELEASE_MS = 1000
const SANDBOX_RETRY_MS = 60_000
const HISTORY_MS = 60_000
const NOTICES_MS = 60_000
/** The shorter wait while commands are refused: a sandbox is installed, and may only be slow. */
const REFUSING_RETRY_MS = 5_000

/** Resolves once connections are accepted. Rejects with `conflict` when the port or the data directory is in use. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  /** Undoes a start that fails, in reverse order. */
  await using undo = new AsyncDisposableStack()
  const lock = await lockDataDirAfterCommands(options.dataDir)
  undo.defer(() => lock.release())
  const runtime = await openRuntime({ ...options, lock })
  undo.defer(() => runtime.close(0))
  const { log, bus } = runtime
  bus.observe((event) => logTurn(log, event))

  const deliveriesStarted = Promise.withResolvers<Deliveries>()
  const config = new ConfigReload(runtime, options.configFile, options.features)
  const gateway = new Gateway(runtime, deliveriesStarted.promise, { ...options.control, reload: config.reload })
  undo.defer(() => gateway.http.close(0))
  // The port is bound before any work starts: a start that cannot have its port has done nothing.
  if (options.listens !== false) await gateway.listen(options)
  await gateway.http.openControlSocket({ dataDir: options.dataDir, operator: operator() })
  log.info('daemon starting', {
    version: options.version,
    profile: options.profile,
    pid: process.pid,
    node: process.versions.node,
    data_dir: options.dataDir,
    config: options.configValues ? 'values of the embedding program' : options.configFile,
  })

  const { procedures, deliveries } = await startWork(runtime, undo)
  deliveriesStarted.resolve(deliveries)
  runtime.health.started()

  const daemon = new RunningDaemon(options, { lock, runtime, config, gateway, procedures, deliveries })
  if (daemon.url !== '') log.info('accepting connections', { url: daemon.url })
  logWarnings(log, operatorWarnings(runtime.snapshot(), options.dataDir))
  undo.move()
  return daemon
}

/** The HTTP side. Requests wait until the deliveries have started. */
class Gateway {
  readonly http: HttpSide
  readonly #auth: Auth
  /** The URL of the first port; empty while none is bound. */
  url = ''
  readonly #runtime: OpenRuntime
  readonly #control: ProcessControl
  /** True once a port is bound that other machines can reach. */
  #isExposed = false

  constructor(runtime: OpenRuntime, deliveries: Promise<Deliveries>, control: ProcessControl) {
    this.#runtime = runtime
    this.#control = control
    this.#auth = createAuth(runtime)
    runtime.offer({
      addresses: () => ({ listening: this.url || null, public: runtime.config().core(gatewaySection).public_url ?? null }),
    })
    this.http = new HttpSide({
      runtime,
      auth: this.#auth,
      clients: runtime.clients,
      subscribers: runtime.subscribers,
      processControl: control,
      intake: {
        receive: async (channel, received) => (await deliveries).receive(channel, received),
        report: async (channel, reports) => (await deliveries).report(channel, reports),
        refusesUnsigned: () => this.#isExposed || this.http.mounted.isUsed,
      },
      ready: deliveries,
    })
  }

  async listen(address: ListenAddress): Promise<string> {
    const { host, port } = this.#runtime.config().core(gatewaySection)
    const socket = address.host === undefined && address.port === undefined ? address.socket : undefined
    const wanted = { host: address.host ?? host, port: address.port ?? port }
    if (socket === undefined) this.#admit(wanted.host)
    const bound = await this.http.listen(socket === undefined ? wanted : { fd: socket }, (given) => this.#admit(given.host))
    if (socket !== undefined && (bound.port !== port || (bound.host !== host && host !== 'localhost')))
      this.#runtime.log.warn('The socket of the service manager has another address than [gateway] host and port.', {
        socket: bound.url,
        gateway: `${host}:${port}`,
        fix: "run 'sluice service install' again",
      })
    this.url ||= bound.url
    return bound.url
  }

  /** Throws for an address that other machines can reach, if a webhook is not signed. Unsigned ones are refused from now on. */
  #admit(host: string): void {
    if (isLoopbackHost(host)) return
    this.#isExposed = true
    if (!this.#runtime.config().core(gatewaySection).allow_unsigned_webhooks) requireSignatures(this.#runtime.snapshot().channels, host)
  }

  async call(request: ApiCall): Promise<unknown> {
    const { apiCalls } = await import('@sluice/http/in-process')
    const runtime = this.#runtime
    const routes = apiCalls({
      runtime,
      snapshot: runtime.snapshot(),
      auth: this.#auth,
      url: () => this.url || null,
      processControl: this.#control,
    })
    const by = operator()
    return routes(request, { client: runtime.clients.ofCaller(by), device: null, by, onControlSocket: true, role: 'operator' })
  }
}

interface DaemonParts {
  readonly lock: { release(): void }
  readonly runtime: OpenRuntime
  readonly config: ConfigReload
  readonly gateway: Gateway
  readonly procedures: Procedures
  readonly deliveries: Deliveries
}

class RunningDaemon implements Daemon {
  readonly runtime: OpenRuntime
  readonly http: HttpSide
  readonly reload: () => Promise<Reloaded>
  readonly #parts: DaemonParts
  /** Aborts when the daemon begins to stop. */
  readonly #stopping = new AbortController()
  #stopped: Promise<void> | undefined

  /** Starts retention, the watches of the configuration file and the clock, and the probes of the sandbox. */
  constructor(options: DaemonOptions, parts: DaemonParts) {
    const { runtime, config, gateway } = parts
    const { signal } = this.#stopping
    this.#parts = parts
    this.runtime = runtime
    this.http = gateway.http
    this.reload = config.reload
    const pruneRuns = (held: AbortSignal) => parts.procedures.pruneEveryHour(held)
    startRetention({ ...runtime, log: runtime.log.child('store'), overheard: new Overheard(runtime), pruneRuns }, signal)
    if (!options.configValues) config.watch(signal)
    startBackups(runtime, { ...options, program: options.program }, signal)
    void hashWebhookSecret(runtime, options)
    void every(runtime.clock, HISTORY_MS, signal, () => void runtime.history.save())
    void every(runtime.clock, NOTICES_MS, signal, () => void tellDueNotices(runtime))
    watchClock({ clock: runtime.clock, store: runtime.store, events: runtime.bus, log: runtime.log, signal })
    void reportNode(runtime, signal)
    // Probed now and not at the first command, so that a missing sandbox is reported at the start.
    void runtime.guards().sandbox.choice()
    void retrySandbox(runtime, signal)
  }

  get url(): string {
    return this.#parts.gateway.url
  }

  readonly listen = (address: ListenAddress): Promise<string> => this.#parts.gateway.listen(address)

  readonly call = (request: ApiCall): Promise<unknown> => this.#parts.gateway.call(request)

  readonly stop = (): Promise<void> => {
    this.#stopped ??= this.#stopInTime()
    return this.#stopped
  }

  async #stopInTime(): Promise<void> {
    const { clock, log, ownership, stopSteps } = this.runtime
    const stop = this.#stop()
    if (await endsWithin(stop, STOP_MS_MAX, clock)) return
    const waitsFor = [...new Set(stopSteps.names)]
    log.warn('daemon ends without waiting longer for its stop', {
      waits_for: waitsFor,
      leases: ownership.holding,
      after_secs: STOP_MS_MAX / 1000,
    })
    stop.catch((error: unknown) => log.error('the stop of the daemon failed', { error }))
  }

  async #stop(): Promise<void> {
    const { lock, runtime, gateway, procedures, deliveries } = this.#parts
    const { log, clock, health, history, lifecycle, approvals, agent, stopSteps } = runtime
    const startedMs = clock.monotonicMs()
    log.info('daemon stopping', { turns_running: runtime.vitals().turnsRunning })
    this.#stopping.abort()
    health.draining()
    // Other nodes of the cluster take over what is idle here while the rest drains.
    const handedOver = runtime.ownership.handOver()
    // Features drain first: a motor must not move for as long as turns may take to end.
    const featuresDrained = stopSteps.during('drain of features', lifecycle.drain())
    // Approvals stop before turns end: a turn that is interrupted while it waits for one asks again after the next start.
    await stopSteps.during('approvals', approvals.stop())
    // Streams stay open while turns end, so that their callers still get the answer.
    const turnsDrained = agent.drain(DRAIN_MS).then(() => gateway.http.endStreams('the daemon stops'))
    await Promise.all([
      featuresDrained,
      stopSteps.during('requests', gateway.http.close(DRAIN_MS)),
      stopSteps.during('turns and streams', turnsDrained),
      stopSteps.during('deliveries', deliveries.stop(DRAIN_MS)),
      stopSteps.during('procedures', procedures.stop(DRAIN_MS)),
    ])
    await stopSteps.during('history', history.save())
    await endsWithin(handedOver, RELEASE_MS, clock)
    await runtime.close(0)
    lock.release()
    log.info('daemon stopped', { took_ms: Math.round(clock.monotonicMs() - startedMs) })
  }
}

/** Tells the other nodes of a cluster what this one sees and runs. */
async function reportNode(runtime: OpenRuntime, signal: AbortSignal): Promise<void> {
  const { cluster } = runtime.store
  if (!cluster) return
  const { watchNodes } = await import('@sluice/runtime/watch-nodes')
  await watchNodes({ ...runtime, cluster, log: runtime.log.child('cluster') }, signal)
}

/** Chooses the sandbox again and again, while commands run in another one than configured or are refused. */
async function retrySandbox({ guards, clock }: OpenRuntime, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const isRefusing = guards().sandbox.latest()?.sandbox.name === REFUSING
    await clock.sleep(isRefusing ? REFUSING_RETRY_MS : SANDBOX_RETRY_MS, signal)
    if (!signal.aborted) await guards().sandbox.retry()
  }
}
