/** The open connections to one server: one for each client, or one for all, with an idle time-out and a cap. */
import { untilAborted } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { Connection } from './connection.ts'

interface Opened {
  readonly connection: Promise<Connection>
  /** The requests that run on it. */
  requests: number
  /** Ends the wait for the idle time-out. */
  idle: AbortController
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

  /** Runs `work` on the connection of `key`, which is opened if there is none. Throws `unavailable` when all connections are busy. */
  async use<Result>({ key, open, signal, work }: Use<Result>): Promise<Result> {
    if (this.#closed.signal.aborted) throw new AppError('unavailable', `The MCP server '${this.#options.server}' was stopped`)
    const opened = this.#opened.get(key) ?? this.#open(key, open)
    opened.idle.abort()
    opened.requests += 1
    try {
      return await work(await untilAborted(opened.connection, signal, 'the request was aborted'))
    } finally {
      opened.requests -= 1
      if (opened.requests === 0) this.#closeWhenIdle(key, opened)
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
    const forget = () => {
      if (this.#opened.get(key) === opened) this.#opened.delete(key)
    }
    const opened: Opened = { connection: open(forget, this.#closed.signal), requests: 0, idle: new AbortController() }
    this.#opened.set(key, opened)
    opened.connection.catch(forget)
    return opened
  }

  #closeWhenIdle(key: string, opened: Opened): void {
    const { clock, idleMs } = this.#options
    opened.idle = new AbortController()
    const { signal } = opened.idle
    void clock.sleep(idleMs, signal).then(() => (signal.aborted ? undefined : this.#close(key, opened)))
  }

  async #close(key: string, opened: Opened): Promise<void> {
    if (this.#opened.get(key) === opened) this.#opened.delete(key)
    opened.idle.abort()
    await opened.connection.then(
      (connection) => connection.close(),
      () => undefined,
    )
  }
}
