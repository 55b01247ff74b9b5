/** The daemon: one runtime with its HTTP server, procedures and deliveries. */
import { gatewaySection, isLoopbackHost, requireSignatures } from '@sluice/config'
import type { Deliveries } from '@sluice/delivery'
import { createAuth } from '@sluice/http'
import { type Listening, listen } from '@sluice/http/listen'
import { operator } from '@sluice/http/operator'
import {
  logWarnings,
  type OpenRuntime,
  openRuntime,
  operatorWarnings,
  REFUSING,
  type RuntimeOptions,
  startRetention,
} from '@sluice/runtime'
import { lockDataDirAfterCommands } from '@sluice/store'
import { ConfigReload } from './config-reload.ts'
import { logTurn } from './log-activity.ts'
import type { Procedures } from './procedures.ts'
import { startWork } from './start-work.ts'

export interface DaemonOptions extends RuntimeOptions {
  /** Replaces `[gateway] host`. */
  readonly host?: string
  /** Replaces `[gateway] port`. */
  readonly port?: number
  /** The descriptor of a listening socket that a service manager passes. Without `host` and `port`, it replaces `[gateway]`'s. */
  readonly socket?: number
}

export interface Daemon {
  readonly url: string
  readonly runtime: OpenRuntime
  /** Reads the configuration file again at once. A file that is not valid changes nothing. Never rejects. */
  reload(): Promise<void>
  /** Stops accepting requests, drains for at most ten seconds, and closes. Idempotent. */
  stop(): Promise<void>
}

/** The longest time that a stop waits for running turns and open responses. */
export const DRAIN_MS = 10_000
const SANDBOX_RETRY_MS = 60_000
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
  bus.subscribe(({ envelope, isForeign }) => {
    if (!isForeign) logTurn(log, envelope)
  })

  // The port is bound before any work starts: a start that cannot have its port has done nothing.
  const deliveriesStarted = Promise.withResolvers<Deliveries>()
  const server = await bindServer(runtime, options, deliveriesStarted.promise)
  undo.defer(() => server.close(0))
  log.info('daemon starting', {
    version: options.version,
    profile: options.profile,
    pid: process.pid,
    node: process.versions.node,
    data_dir: options.dataDir,
    config: options.configFile,
  })

  const { procedures, deliveries } = await startWork(runtime, undo)
  deliveriesStarted.resolve(deliveries)
  runtime.health.started()

  const daemon = new RunningDaemon(options, { lock, runtime, server, procedures, deliveries })
  log.info('accepting connections', { url: daemon.url })
  logWarnings(log, operatorWarnings(runtime.snapshot(), options.dataDir))
  undo.move()
  return daemon
}

/** Requests that need the deliveries wait until they have started. */
async function bindServer(runtime: OpenRuntime, options: DaemonOptions, deliveries: Promise<Deliveries>): Promise<Listening> {
  const gateway = runtime.config().core(gatewaySection)
  const { host = gateway.host, port = gateway.port } = options
  const socket = options.host === undefined && options.port === undefined ? options.socket : undefined
  /** The address of a given socket is known only once it is bound. Until then, no request is served. */
  const reach = { refusesUnsigned: true }
  const receive: Deliveries['receive'] = async (channel, received) => (await deliveries).receive(channel, received)
  const server = await listen({
    runtime,
    auth: createAuth(runtime),
    clients: runtime.clients,
    subscribers: runtime.subscribers,
    intake: {
      receive,
      get refusesUnsigned() {
        return reach.refusesUnsigned
      },
    },
    host,
    port,
    ...(socket !== undefined && { socket }),
    control: { dataDir: options.dataDir, operator: operator() },
    ready: deliveries,
  })
  reach.refusesUnsigned = !isLoopbackHost(server.host)
  try {
    if (reach.refusesUnsigned && !gateway.allow_unsigned_webhooks) requireSignatures(runtime.snapshot().channels, server.host)
  } catch (error) {
    await server.close(0)
    throw error
  }
  if (socket !== undefined && (server.port !== port || (server.host !== host && host !== 'localhost')))
    runtime.log.warn('The socket of the service manager has another address than [gateway] host and port.', {
      socket: server.url,
      gateway: `${host}:${port}`,
      fix: "run 'sluice service install' again",
    })
  return server
}

interface DaemonParts {
  readonly lock: { release(): void }
  readonly runtime: OpenRuntime
  readonly server: Listening
  readonly procedures: Procedures
  readonly deliveries: Deliveries
}

class RunningDaemon implements Daemon {
  readonly url: string
  readonly runtime: OpenRuntime
  readonly reload: () => Promise<void>
  readonly #parts: DaemonParts
  /** Aborts when the daemon begins to stop. */
  readonly #stopping = new AbortController()
  #stopped: Promise<void> | undefined

  /** Starts retention, the watch of the configuration file and the probes of the sandbox. */
  constructor(options: DaemonOptions, parts: DaemonParts) {
    const { runtime, server } = parts
    const { signal } = this.#stopping
    const config = new ConfigReload(runtime, options.configFile)
    this.#parts = parts
    this.runtime = runtime
    this.url = server.url
    this.reload = config.reload
    startRetention({ ...runtime, log: runtime.log.child('store'), pruneRuns: (held) => parts.procedures.pruneEveryHour(held) }, signal)
    config.watch(signal)
    // Probed now and not at the first command, so that a missing sandbox is reported at the start.
    void runtime.guards().sandbox.choice()
    void retrySandbox(runtime, signal)
  }

  readonly stop = (): Promise<void> => {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    const { lock, runtime, server, procedures, deliveries } = this.#parts
    const { log, clock, health, lifecycle, approvals, agent } = runtime
    const startedMs = clock.monotonicMs()
    log.info('daemon stopping', { turns_running: runtime.vitals().turnsRunning })
    this.#stopping.abort()
    health.draining()
    // Features drain first: a motor must not move for as long as turns may take to end.
    const featuresDrained = lifecycle.drain()
    // Approvals stop before turns end: a turn that is interrupted while it waits for one asks again after the next start.
    await approvals.stop()
    // Streams stay open while turns end, so that their callers still get the answer.
    const turnsDrained = agent.drain(DRAIN_MS).then(() => server.endStreams('the daemon stops'))
    await Promise.all([featuresDrained, server.close(DRAIN_MS), turnsDrained, deliveries.stop(DRAIN_MS), procedures.stop(DRAIN_MS)])
    await runtime.close(0)
    lock.release()
    log.info('daemon stopped', { took_ms: Math.round(clock.monotonicMs() - startedMs) })
  }
}

/** Chooses the sandbox again and again, while commands run in another one than configured or are refused. */
async function retrySandbox({ guards, clock }: OpenRuntime, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const isRefusing = guards().sandbox.latest()?.sandbox.name === REFUSING
    await clock.sleep(isRefusing ? REFUSING_RETRY_MS : SANDBOX_RETRY_MS, signal)
    if (!signal.aborted) await guards().sandbox.retry()
  }
}
