/** Sluice inside another program: one call starts it, and everything that it holds ends with `close`. */
import { join, resolve } from 'node:path'
import type { Approver, TurnPart, TurnResult } from '@sluice/agent'
import type { ConfigValues } from '@sluice/config'
import { localTurn } from '@sluice/http/local-turn'
import { createMountedApp } from '@sluice/http/mounted-app'
import { type ApiCall, AppError, type EventEnvelope, type EventType, type Feature, type Logger } from '@sluice/sdk'
import type { Hono } from 'hono'
import manifest from '../package.json' with { type: 'json' }
import { type Daemon, type ListenAddress, startDaemon } from './daemon.ts'

export interface SluiceOptions {
  /** The features of this instance, such as the default exports of `@sluice/provider-openai` and `@sluice/tool-files`. */
  readonly features: readonly Feature[]
  /** The folder of the database, the keys and the workspace; made if it does not exist. One instance at a time can use it. */
  readonly dataDir: string
  /**
   * The path of a TOML file, which is watched, or the sections of such a file as an object, which cannot change. Default: the file
   * `config.toml` in `dataDir`, if it exists.
   */
  readonly config?: string | ConfigValues
  /** Environment variables that replace keys of the configuration, such as `process.env`. Default: none. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Gets every log line of `[log] level` and above, with secrets masked; false: nobody does. Default: lines on standard error. */
  readonly logger?: Logger | false
  /**
   * Sends the requests of channels, providers and tools that name their address themselves. Default: the global `fetch`. Requests to
   * addresses that a model or a sender names do not use it: their addresses are checked.
   */
  readonly fetch?: typeof fetch
  /** Closes the instance when it aborts. */
  readonly signal?: AbortSignal
  /** Binds a port before any work starts, so that a start without its port has done nothing. Absent: `listen` can do so later. */
  readonly listen?: ListenAddress
  /** The name of the build in status and traces. Default: `embedded`. */
  readonly profile?: string
  /** True: a data directory whose database is gone may start with an empty one. */
  readonly newDatabase?: boolean
  /**
   * True in a process that runs nothing else: the global `Request` and `Response` are replaced by classes that are cheaper to make.
   * Default: false, so that nothing global changes.
   */
  readonly ownsProcess?: boolean
}

export interface RunOptions {
  /** The name of the session that the turn continues: 1 to 128 of `A-Z a-z 0-9 . _ -`. Absent: a turn without history. */
  readonly session?: string
  /** One of `[agents.<name>]`. Default: `main`. */
  readonly agent?: string
  /** The only tools that the turn may call. Default: all tools of the agent. */
  readonly tools?: readonly string[]
  /** Aborts the turn. */
  readonly signal?: AbortSignal
  /** Called with each part of the turn while it runs: text, tool calls and their results. */
  readonly onPart?: (part: TurnPart) => void
  /** Decides tool calls that need an approval. Default: people in the chats of `[approvals]` are asked. */
  readonly approve?: Approver
}

/** The end of a turn. `id` is that of `GET /api/turns/:id`. */
export type RunResult = Pick<TurnResult, 'id' | 'text' | 'model' | 'finishReason' | 'usage'>

/** The event of a type; `*` stands for every type. */
export type EventOf<Type extends EventType | '*'> = Type extends '*' ? EventEnvelope : Extract<EventEnvelope, { readonly type: Type }>

/** A running instance. It keeps the process alive until it is closed. */
export interface Sluice extends AsyncDisposable {
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
  /** Runs one turn and resolves when its end is durable. Rejects with an `AppError`, such as `upstream`, `aborted` or `not_found`. */
  run(message: string, options?: RunOptions): Promise<RunResult>
  /**
   * Calls `listener` for each event of a type from now on, in order; docs/events.md lists the types. An error of the listener is logged.
   * Returns an unsubscribe function.
   */
  on<Type extends EventType | '*'>(type: Type, listener: (event: EventOf<Type>) => void): () => void
  /** Calls a route of `/api` as the operator, without HTTP. Resolves to its JSON answer; rejects with the error of the route. */
  call(request: ApiCall): Promise<unknown>
  /** Reads the configuration file again at once. A file that is not valid changes nothing. Never rejects. */
  reload(): Promise<void>
  /** Accepts nothing more, lets running turns end for at most ten seconds, and releases everything. Idempotent. */
  close(): Promise<void>
}

const KEEP_ALIVE_MS = 60_000
const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

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

function daemonOptions({ config, logger, listen, profile = 'embedded', env = {}, ...options }: SluiceOptions) {
  const dataDir = resolve(options.dataDir)
  return {
    features: options.features,
    dataDir,
    configFile: typeof config === 'string' ? resolve(config) : join(dataDir, 'config.toml'),
    ...(typeof config === 'object' && { configValues: config }),
    env,
    profile,
    version: manifest.version,
    logger: logger === false ? SILENT : logger,
    fetch: options.fetch,
    newDatabase: options.newDatabase ?? false,
    listens: listen !== undefined,
    ...listen,
    replacesGlobals: options.ownsProcess ?? false,
  }
}

class EmbeddedSluice implements Sluice {
  readonly app: Hono
  readonly handleRequest: Sluice['handleRequest']
  readonly handleUpgrade: Sluice['handleUpgrade']
  readonly log: Logger
  readonly closed: Promise<void>
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
    this.listen = (address = {}) => daemon.listen(address)
    this.call = daemon.call
    this.reload = daemon.reload
  }

  get url(): string | null {
    return this.#daemon.url || null
  }

  readonly run: Sluice['run'] = async (message, { session, agent, onPart, ...rest } = {}) => {
    const { runtime } = this.#daemon
    const turn = localTurn({ session, agent }, runtime.snapshot())
    const client = runtime.clients.ofCaller(turn.caller ?? turn.source)
    const ended = await runtime.agent.run({ ...turn, ...rest, text: message, client, ...(onPart && { listen: onPart }) })
    const { id, text, model, finishReason, usage } = ended
    return { id, text, model, finishReason, usage }
  }

  on<Type extends EventType | '*'>(type: Type, listener: (event: EventOf<Type>) => void): () => void {
    const { bus, log } = this.#daemon.runtime
    return bus.subscribe(({ envelope }) => {
      if (type !== '*' && envelope.type !== type) return
      try {
        listener(envelope as EventOf<Type>)
      } catch (error) {
        log.error('a listener of events failed', { type: envelope.type, error })
      }
    })
  }

  readonly close = (): Promise<void> => {
    this.#closing ??= this.#close()
    return this.#closing
  };

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    // Timers of the system clock are unreferenced. Without this one, the process could end before the instance has closed.
    const keepAlive = setInterval(() => {}, KEEP_ALIVE_MS)
    try {
      await this.#daemon.stop()
    } finally {
      clearInterval(keepAlive)
      this.#ended.resolve()
    }
  }
}
