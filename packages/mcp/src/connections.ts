/** The open connections to one server: one for each client, or one for all, with an idle time-out and a cap. */
import { untilAborted } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { Connection } from './connection.ts'

interface Opened {
  readonly connection: Promise<Connection>
  /** The requests that run on it. */
  requests: number
  /** The connection, once it is open. */
  ready: Connection | undefined
  /** When the last request ended. */
  idleSinceMs: number
  /** Aborts when the connection is removed. */
  readonly ended: AbortController
}

export interface ConnectionsOptions {
  readonly clock: Clock
  readonly server: string
  readonly connectionsMax: number
  readonly idleMs: number
}

/** Opens a connection. It calls `onEnd` when the connection has ended. */
export type OpenConnection = (onEnd: () => void, signal: AbortSignal) => Promise<Connection>

/** A request on a connection. */
export interface Use<Result> {
  /** Whom the connection belongs to, such as a client of an agent. */
  readonly key: string
  readonly open: OpenConnection
  /** Ends the wait for the connection; the connection itself is kept for the next request. */
  readonly signal: AbortSignal
  work(connection: Connection): Promise<Result>
}

export class Connections {
  readonly #options: ConnectionsOptions
  readonly #opened = new Map<string, Opened>()
  readonly #closed = new AbortController()

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  /** The number of connections that are open or being opened. */
  get count(): number {
    return this.#opened.size
  }

  /**
   * Runs `work` on the connection of `key`, which is opened if it is missing, and once more on a new one if the server has forgotten the
   * session. Throws `unavailable` when all connections are busy.
   */
  async use<Result>(request: Use<Result>): Promise<Result> {
    let used: Connection | undefined
    const work = (connection: Connection): Promise<Result> => {
      used = connection
      return request.work(connection)
    }
    try {
      return await this.#use({ ...request, work })
    } catch (error) {
      if (!used?.hasRefused(error) || request.signal.aborted) throw error
      return this.#use(request)
    }
  }

  async #use<Result>({ key, open, signal, work }: Use<Result>): Promise<Result> {
    if (this.#closed.signal.aborted) throw new AppError('unavailable', `The MCP server '${this.#options.server}' was stopped`)
    const known = this.#opened.get(key)
    const isUsable = known && (!known.ready || (known.ready.isOpen && !known.ready.isForgotten))
    if (!isUsable) this.#opened.delete(key)
    const opened = isUsable ? known : this.#open(key, open)
    opened.requests += 1
    try {
      return await work(opened.ready ?? (await untilAborted(opened.connection, signal, 'the request was aborted')))
    } finally {
      opened.requests -= 1
      opened.idleSinceMs = this.#options.clock.monotonicMs()
      // Its last request may still get an answer, and no other request begins on it.
      if (opened.requests === 0 && opened.ready?.isForgotten) void this.#close(key, opened)
    }
  }

  /** Ends every connection. Idempotent. */
  async close(): Promise<void> {
    this.#closed.abort()
    await Promise.all([...this.#opened].map(([key, opened]) => this.#close(key, opened)))
  }

  #open(key: string, open: OpenConnection): Opened {
    const { connectionsMax, server } = this.#options
    if (this.#opened.size >= connectionsMax) {
      const idle = [...this.#opened].find(([, { requests }]) => requests === 0)
      if (!idle)
        throw new AppError('unavailable', `All ${connectionsMax} connections to the MCP server '${server}' are in use; try again later`)
      void this.#close(...idle)
    }
    const forget = () => this.#forget(key, opened)
    const opened: Opened = {
      connection: open(forget, this.#closed.signal),
      requests: 0,
      ready: undefined,
      idleSinceMs: this.#options.clock.monotonicMs(),
      ended: new AbortController(),
    }
    this.#opened.set(key, opened)
    opened.connection.then((connection) => {
      opened.ready = connection
    }, forget)
    void this.#closeWhenIdle(key, opened)
    return opened
  }

  /** One timer for each connection, whatever the number of requests. */
  async #closeWhenIdle(key: string, opened: Opened): Promise<void> {
    const { clock, idleMs } = this.#options
    const { signal } = opened.ended
    while (!signal.aborted) {
      const leftMs = opened.requests > 0 ? idleMs : opened.idleSinceMs + idleMs - clock.monotonicMs()
      if (leftMs <= 0) return this.#close(key, opened)
      await clock.sleep(leftMs, signal)
    }
  }

  #forget(key: string, opened: Opened): void {
    opened.ended.abort()
    if (this.#opened.get(key) === opened) this.#opened.delete(key)
  }

  async #close(key: string, opened: Opened): Promise<void> {
    this.#forget(key, opened)
    await opened.connection.then(
      (connection) => connection.close(),
      () => undefined,
    )
  }
}
