/** Sluice inside another program: one call starts it, and everything that it holds ends with `close`. */
import { createMountedApp } from '@sluice/http/mounted-app'
import { type ApiCall, AppError, type Logger } from '@sluice/sdk'
import type { Hono } from 'hono'
import { type Daemon, type DaemonOptions, type ListenAddress, startDaemon } from './daemon.ts'
import { type EmbeddedTurns, embeddedTurns } from './embedded-turns.ts'
import { type EmbeddingOptions, runtimeOptions } from './embedding-options.ts'
import { keepAlive } from './open-agent.ts'

/** A configuration file is watched: a change of it comes into force while the instance runs. */
export interface SluiceOptions extends EmbeddingOptions {
  /** Closes the instance when it aborts. */
  readonly signal?: AbortSignal
  /** Binds a port before any work starts, so that a start without its port has done nothing. Absent: `listen` can do so later. */
  readonly listen?: ListenAddress
  /** True: a data directory whose database is gone may start with an empty one. */
  readonly newDatabase?: boolean
  /** The command that starts the command line of Sluice, for the backups of `[backup] schedule`; without it, none are made. */
  readonly program?: readonly string[]
  /** Ends the process or begins it again when an operator asks for it, as `sluice stop` and `sluice restart` do; without it, both are refused. */
  readonly control?: { readonly stop?: (() => void) | undefined; readonly restart?: (() => void) | undefined }
}

/** A running instance. It keeps the process alive until it is closed. */
export interface Sluice extends EmbeddedTurns, AsyncDisposable {
  /** The whole HTTP API. Mount it under any path, before any middleware that reads bodies; it serves no WebSockets, see `handleUpgrade`. */
  readonly app: Hono
  /** Serves a request of Node's own server, of Express or of Fastify, whose path is the path of the API. */
  readonly handleRequest: Daemon['http']['mounted']['handleRequest']
  /**
   * Serves a WebSocket of the host's server, for its `upgrade` event: `/ws/events` and `/ws/chat`, below any path. Pass on only
   * upgrades that are meant for Sluice: any other gets 404 and loses its connection.
   */
  readonly handleUpgrade: Daemon['http']['mounted']['handleUpgrade']
  /** The address of the first port; null while none is bound. */
  readonly url: string | null
  /** The log of this instance. No line shows a configured secret. */
  readonly log: Logger
  /** Resolves once the instance has closed, for whatever reason. Never rejects. */
  readonly closed: Promise<void>
  /** Binds a port. Resolves to its URL, `http://host:port`. Rejects with `conflict` when the port is in use. */
  listen(address?: ListenAddress): Promise<string>
  /** Calls a route of `/api` as the operator, without HTTP. Resolves to its JSON answer; rejects with the error of the route. */
  call(request: ApiCall): Promise<unknown>
  /** Reads the configuration file again at once. A file that is not valid changes nothing. Never rejects. */
  reload(): Promise<void>
  /** Accepts nothing more, lets running turns end for at most ten seconds, and releases everything. Idempotent. */
  close(): Promise<void>
}

/**
 * Starts an instance: its features, connections, procedures and deliveries. It installs no signal handler, writes nothing to
 * standard output and changes nothing global, so several instances can run in one process, each with its own data directory.
 * Rejects with `conflict` when the data directory or the port is in use, with `config_invalid` for a configuration that is not valid,
 * and with `aborted` when `signal` aborts before the start has ended. Nothing stays open then.
 */
export async function createSluice(options: SluiceOptions): Promise<Sluice> {
  const { signal } = options
  if (signal?.aborted) throw stoppedEarly(signal)
  const daemon = await startDaemon(daemonOptions(options))
  const sluice = new EmbeddedSluice(daemon)
  if (!signal) return sluice
  if (signal.aborted) {
    await sluice.close()
    throw stoppedEarly(signal)
  }
  const close = () => void sluice.close().catch((error: unknown) => sluice.log.error('the instance could not be closed', { error }))
  signal.addEventListener('abort', close, { once: true })
  void sluice.closed.then(() => signal.removeEventListener('abort', close))
  return sluice
}

const stoppedEarly = ({ reason }: AbortSignal): AppError =>
  new AppError('aborted', 'Sluice was stopped before it had started', { cause: reason })

const daemonOptions = ({ listen, newDatabase = false, program, control, ...options }: SluiceOptions): DaemonOptions => ({
  ...runtimeOptions(options),
  newDatabase,
  listens: listen !== undefined,
  ...listen,
  ...(program && { program }),
  ...(control && { control }),
})

class EmbeddedSluice implements Sluice {
  readonly app: Hono
  readonly handleRequest: Sluice['handleRequest']
  readonly handleUpgrade: Sluice['handleUpgrade']
  readonly log: Logger
  readonly closed: Promise<void>
  readonly run: Sluice['run']
  readonly on: Sluice['on']
  readonly listen: Sluice['listen']
  readonly call: Sluice['call']
  readonly reload: Sluice['reload']
  readonly #daemon: Daemon
  readonly #ended = Promise.withResolvers<void>()
  #closing: Promise<void> | undefined

  constructor(daemon: Daemon) {
    const { mounted } = daemon.http
    this.#daemon = daemon
    this.app = createMountedApp(mounted.fetch)
    this.handleRequest = mounted.handleRequest
    this.handleUpgrade = mounted.handleUpgrade
    this.log = daemon.runtime.log
    this.closed = this.#ended.promise
    const { run, on } = embeddedTurns(daemon.runtime)
    this.run = run
    this.on = on
    this.listen = (address = {}) => daemon.listen(address)
    this.call = daemon.call
    this.reload = async () => void (await daemon.reload())
  }

  get url(): string | null {
    return this.#daemon.url || null
  }

  readonly close = (): Promise<void> => {
    this.#closing ??= keepAlive(this.#daemon.stop()).finally(this.#ended.resolve)
    return this.#closing
  };

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
