/** The daemon: one runtime, its HTTP side and the configuration watch. */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { demandProofs, gatewaySection, isLoopbackHost, LOSS_HOLD_MS, readConfigText, watchConfig, workspaceRoot } from '@sluice/config'
import { type Deliveries, startDeliveries } from '@sluice/delivery'
import { createAuth } from '@sluice/http'
import { listen } from '@sluice/http/listen'
import {
  canAgentWrite,
  logTurn,
  logWarnings,
  type OpenRuntime,
  openRuntime,
  operatorWarnings,
  REFUSING,
  type RuntimeOptions,
  startRetention,
} from '@sluice/runtime'
import { AppError, errorText } from '@sluice/sdk'
import { lockDataDir } from '@sluice/store'
import { deliveryDeps } from './delivery-deps.ts'
import { startProcedures } from './procedures.ts'

export interface DaemonOptions extends RuntimeOptions {
  /** Instead of `[gateway] host` and `port`. */
  readonly host?: string
  readonly port?: number
}

export interface Daemon {
  readonly url: string
  readonly runtime: OpenRuntime
  /** Reads the configuration file again, at once. A file that is not valid changes nothing. Never rejects. */
  reload(): Promise<void>
  /** Stops accepting, drains for at most ten seconds, closes. Idempotent. */
  stop(): Promise<void>
}

/** How long a stop may wait for running turns and open responses. */
const DRAIN_MS = 10_000

/** Resolves once connections are accepted. Rejects with `conflict` when the port or the data directory is taken. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const lock = lockDataDir(options.dataDir)
  try {
    return await startLocked(options, lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

async function startLocked(options: DaemonOptions, lock: { release(): void }): Promise<Daemon> {
  const runtime = await openRuntime({ ...options, locked: true })
  /** What a start that fails takes back, in reverse. */
  const undo: (() => Promise<void>)[] = [() => runtime.close(0)]
  try {
    return await startOn(runtime, options, lock, undo)
  } catch (error) {
    for (const step of undo.toReversed()) await step()
    throw error
  }
}

async function startOn(
  runtime: OpenRuntime,
  options: DaemonOptions,
  lock: { release(): void },
  undo: (() => Promise<void>)[],
): Promise<Daemon> {
  const { log, bus, clock } = runtime
  const { profile, version, dataDir, configFile } = options
  bus.subscribe(({ envelope }) => logTurn(log, envelope))
  const gateway = runtime.config().core(gatewaySection)
  const host = options.host ?? gateway.host
  const demandsProof = !isLoopbackHost(host)
  if (demandsProof && !gateway.allow_unsigned_webhooks) demandProofs(runtime.snapshot().channels, host)
  const auth = createAuth(runtime)
  const started = Promise.withResolvers<Deliveries>()
  // Bound before anything is taken up: a start that cannot have its port has done nothing.
  const server = await listen({
    runtime,
    auth,
    clients: runtime.clients,
    subscribers: runtime.subscribers,
    intake: { receive: async (channel, received) => (await started.promise).receive(channel, received), demandsProof },
    host,
    port: options.port ?? gateway.port,
    ready: started.promise,
  })
  undo.push(() => server.close(0))
  log.info('Starting', { version, profile, pid: process.pid, node: process.versions.node, data_dir: dataDir, config: configFile })
  // Before turns and deliveries: a turn that goes on may ask, and an answer that waits has to find its question.
  await runtime.approvals.start()
  // Before anything new is accepted: what the last run left behind comes first.
  const unfinished = await runtime.agent.resume()
  if (unfinished > 0) log.info('taking up turns the last run left unfinished', { turns: unfinished })
  // And before messages: a procedure may be what takes one.
  const procedures = await startProcedures(runtime)
  undo.push(() => procedures.stop(0))
  const deliveries = await startDeliveries(deliveryDeps(runtime, procedures))
  undo.push(() => deliveries.stop(0))
  runtime.delivery.start(deliveries)
  started.resolve(deliveries)
  runtime.health.started()
  const file = join(options.dataDir, 'daemon.json')
  const described = {
    pid: process.pid,
    url: server.url,
    version: options.version,
    profile: options.profile,
    started_at: new Date(runtime.startedAtMs).toISOString(),
  }
  try {
    writeDaemonFile(file, described)
  } catch (error) {
    log.warn('daemon.json could not be written: commands will not find this daemon', { error })
  }
  const watching = new AbortController()
  startRetention({ ...runtime, log: log.child('store') }, watching.signal)
  watchConfig({
    file: options.configFile,
    text: runtime.configText,
    signal: watching.signal,
    onChange: (text) => takeChange(runtime, configFile, text),
    onLoss: (lost) =>
      log.warn('The configuration file lost text. The daemon keeps the configuration in force unless the file stays so.', {
        file: options.configFile,
        lost,
        waits_secs: LOSS_HOLD_MS / 1000,
      }),
  })
  log.info('Accepting connections', { url: server.url })
  logWarnings(runtime)
  // Probed now rather than at the first command, so that what is missing is told at the start.
  void runtime.guards().sandbox.choice()
  void retrySandbox(runtime, watching.signal)

  let stopping: Promise<void> | undefined
  const stop = async () => {
    const startedMs = clock.monotonicMs()
    log.info('Stopping', { turns_running: runtime.vitals().turnsRunning })
    watching.abort()
    runtime.health.draining()
    // First of all: what moves must not go on for as long as turns may take to end.
    const featuresDrained = runtime.lifecycle.drain()
    // And before turns end: a turn that is cut while it waits for a person asks again after the next start.
    await runtime.approvals.stop()
    // Streams stay open while turns end: whoever talks over one still gets the answer.
    const drained = runtime.agent.drain(DRAIN_MS).then(() => server.endStreams('the daemon stops'))
    await Promise.all([featuresDrained, server.close(DRAIN_MS), drained, deliveries.stop(DRAIN_MS), procedures.stop(DRAIN_MS)])
    await runtime.close(0)
    rmSync(file, { force: true })
    lock.release()
    log.info('Stopped', { took_ms: Math.round(clock.monotonicMs() - startedMs) })
  }
  return {
    url: server.url,
    runtime,
    reload: () => reloadFile(runtime, configFile),
    stop: () => (stopping ??= stop()),
  }
}

const SANDBOX_RETRY_MS = 60_000
/** While commands are refused: the sandbox is installed, and may only be slow. */
const REFUSING_RETRY_MS = 5_000

/** Chooses the sandbox again, for as long as commands run in another one than configured, or not at all. */
async function retrySandbox({ guards, clock }: OpenRuntime, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const isRefusing = guards().sandbox.latest()?.sandbox.name === REFUSING
    await clock.sleep(isRefusing ? REFUSING_RETRY_MS : SANDBOX_RETRY_MS, signal)
    if (!signal.aborted) await guards().sandbox.retry()
  }
}

/** Replaced as a whole, so that no reader sees half of it. */
function writeDaemonFile(file: string, content: object): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(content)}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Unlike a change that the watch finds, this one was asked for: a file that lost text is applied at once. */
async function reloadFile(runtime: OpenRuntime, file: string): Promise<void> {
  runtime.log.info('Reading the configuration again', { file })
  try {
    await applyChange(runtime, await readConfigText(file))
  } catch (error) {
    runtime.log.error('The configuration could not be read; the one in force stays', { error: errorText(error) })
  }
}

/** A change of a file that the agent can write may be the agent's own: it waits until an operator asks for it. */
async function takeChange(runtime: OpenRuntime, file: string, text: string): Promise<void> {
  const { dataDir, log } = runtime
  if (!canAgentWrite(file, { workspace: workspaceRoot(runtime.config(), dataDir), dataDir })) return applyChange(runtime, text)
  log.warn('The configuration file changed, but the agent can write in its folder, so the change is not in force.', {
    file,
    fix: `check the file and send SIGHUP to process ${process.pid}; better, keep it in ${dataDir}`,
  })
}

/** A configuration that does not validate changes nothing: the daemon goes on with the one in force, and says why. */
async function applyChange(runtime: OpenRuntime, text: string): Promise<void> {
  const { log, bus, health } = runtime
  const before = runtime.config().core(gatewaySection)
  const known = operatorWarnings(runtime)
  try {
    void runtime.guards().sandbox.retry()
    const { sections, rebuilt } = await runtime.reload(text)
    health.configRead(true)
    if (sections.length === 0) return
    log.info('configuration reloaded', { sections, rebuilt })
    logWarnings(runtime, known)
    void runtime.guards().sandbox.choice()
    bus.emit({ type: 'config_reloaded', sections, rebuilt })
    const { host, port } = runtime.config().core(gatewaySection)
    if (host !== before.host || port !== before.port) log.warn('[gateway] host and port take effect at the next start')
  } catch (error) {
    health.configRead(false)
    const problems = error instanceof AppError ? error.fields.problems : undefined
    log.error('the changed configuration is not valid; the one in force stays', { error: errorText(error), problems })
    bus.emit({ type: 'config_rejected', error: errorText(error) })
  }
}
