/**
 * A connection for writes that always finds out whether a transaction was committed. Each transaction counts itself in a row of this
 * connection. When a connection breaks between COMMIT and its answer, the next connection takes the row over, which waits for the
 * earlier transaction or prevents it, and reads from the count whether it was committed.
 */
import type { Logger } from '@sluice/sdk'
import type pg from 'pg'
import { type Answer, sendAtOnce } from './batch.ts'
import {
  answered,
  type ConnectionSettings,
  connect,
  disconnect,
  endsInTime,
  queryOf,
  type Row,
  type Statement,
  send,
  sql,
} from './connection.ts'
import { isConnectionError } from './postgres-error.ts'
import { wentBack } from './server-history.ts'

// The row of an earlier connection is locked while its last transaction runs, and its generation no longer matches afterwards.
// A starting daemon removes the rows of processes that are not listed, so a process is listed, as one without a sign of life, before it beats.
const TAKE_OVER = `
  WITH listed AS (
    INSERT INTO processes (id, node, schema_version, beat_at) VALUES ($1, '', 0, clock_timestamp() - interval '1 hour')
    ON CONFLICT (id) DO NOTHING)
  INSERT INTO connections (process, slot, generation, writes) VALUES ($1, $2, $3, 0)
  ON CONFLICT (process, slot) DO UPDATE SET generation = excluded.generation RETURNING writes, xmax <> 0 AS "isKnown"`
/** Fails when another connection has taken the row over, or a lease was lost. */
const BEGIN_UNDER = `
  WITH held AS (SELECT epoch FROM leases WHERE epoch = ANY ($5::bigint[]) FOR SHARE),
    counted AS (
      UPDATE connections SET writes = $4 WHERE process = $1 AND slot = $2 AND generation = $3 AND writes < $4 RETURNING writes)
  SELECT 1 / (((SELECT count(*) FROM held) = cardinality($5::bigint[])) AND EXISTS (SELECT 1 FROM counted))::int`
const BEGIN_FREE = `
  WITH counted AS (
    UPDATE connections SET writes = $4 WHERE process = $1 AND slot = $2 AND generation = $3 AND writes < $4 RETURNING writes)
  SELECT 1 / (EXISTS (SELECT 1 FROM counted))::int`
/** SQLSTATE of a division by zero. */
export const NOT_BEGUN = '22012'

const RECONNECT_MS = 100
/** How long a transaction whose outcome is unknown waits for a new connection. */
const RESOLVE_MS_MAX = 20_000

export interface MarkedOptions {
  readonly settings: ConnectionSettings
  readonly log: Logger
  /** Names this process among all that share the database. */
  readonly process: string
  /** The number of this connection among the connections of the process. */
  readonly slot: number
}

/** What became of a transaction that was sent as a whole. `results` has the rows of each statement whose answer arrived. */
export interface Outcome {
  readonly isCommitted: boolean
  readonly results: readonly (readonly Row[] | undefined)[]
  /** The first error, when the transaction was not committed. */
  readonly error?: unknown
}

interface Attempt extends Answer {
  /** False when the connection broke before the outcome was known. */
  readonly isKnown: boolean
}

export class MarkedConnection {
  readonly #options: MarkedOptions
  #connecting: Promise<pg.Client> | undefined
  #generation = 0
  /** The count of the last transaction that was begun. */
  #begun = 0
  /** The count of the last transaction that was committed, as the row says. */
  #committed = 0
  #isClosed = false

  constructor(options: MarkedOptions) {
    this.#options = options
  }

  /** Sends a transaction at once. Never rejects. One transaction at a time. */
  async run(statements: readonly Statement[], epochs: readonly number[]): Promise<Outcome> {
    let client: pg.Client
    const connecting = this.#connect()
    try {
      client = await connecting
    } catch (error) {
      this.#drop(connecting)
      return { isCommitted: false, results: [], error }
    }
    const writes = ++this.#begun
    const all = [this.#count(writes, epochs), ...statements]
    const { rows, error, isKnown } = await (endsInTime(client) ? inOnePiece(client, all) : oneByOne(client, all))
    const results = rows.slice(1)
    if (isKnown && error === undefined) {
      this.#committed = writes
      return { isCommitted: true, results }
    }
    if (!isKnown || isConnectionError(error)) this.#drop(connecting)
    return { isCommitted: !isKnown && (await this.#wasCommitted(writes)), results, error }
  }

  /** Begins a transaction of several round trips. Rejects when it cannot begin. One transaction at a time. */
  async begin(epochs: readonly number[]): Promise<Transaction> {
    const connecting = this.#connect()
    try {
      const client = await connecting
      const writes = ++this.#begun
      await answered(client, Promise.all([send(client, sql('BEGIN')), send(client, this.#count(writes, epochs))]))
      return this.#transaction(client, connecting, writes)
    } catch (error) {
      // A transaction that failed to begin is still open on the server.
      this.#drop(connecting)
      throw error
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#connecting?.then(disconnect, () => undefined)
  }

  #transaction(client: pg.Client, connecting: Promise<pg.Client>, writes: number): Transaction {
    return {
      all: async <R>(statement: Statement) => (await answered(client, send(client, statement))).rows as R[],
      commit: async () => {
        try {
          const { command } = await answered(client, send(client, sql('COMMIT')))
          if (command !== 'COMMIT') throw new Error('The transaction had failed before its commit.')
          this.#committed = writes
        } catch (error) {
          if (!isConnectionError(error)) throw error
          this.#drop(connecting)
          if (!(await this.#wasCommitted(writes))) throw error
        }
      },
      rollBack: async (error) => {
        if (isConnectionError(error)) return this.#drop(connecting)
        await answered(client, send(client, sql('ROLLBACK'))).catch(() => this.#drop(connecting))
      },
    }
  }

  #count(writes: number, epochs: readonly number[]): Statement {
    const values = [this.#options.process, this.#options.slot, this.#generation, writes]
    return epochs.length === 0 ? sql(BEGIN_FREE, ...values) : sql(BEGIN_UNDER, ...values, epochs)
  }

  #connect(): Promise<pg.Client> {
    if (this.#connecting) return this.#connecting
    const connecting = this.#takeOver()
    this.#connecting = connecting
    // A connection that breaks while it is idle is replaced before the next transaction.
    connecting.then(
      (client) => client.on('error', () => this.#drop(connecting)).on('end', () => this.#drop(connecting)),
      () => undefined,
    )
    return connecting
  }

  async #takeOver(): Promise<pg.Client> {
    const { settings, process, slot } = this.#options
    const client = await connect(settings, { pipeline: true })
    try {
      const generation = this.#generation + 1
      const { rows } = await answered(client, send(client, sql(TAKE_OVER, process, slot, generation)))
      const [row] = rows
      const writes = Number(row?.writes)
      if (row?.isKnown === true && writes < this.#committed) {
        if (settings.history) await answered(client, settings.history.lacks(queryOf(client), this.#committed - writes))
        throw wentBack([
          { name: `${client.host}:${client.port}`, why: `has ${writes} commits of one connection, which made ${this.#committed}` },
        ])
      }
      this.#generation = generation
      this.#committed = writes
      return client
    } catch (error) {
      void disconnect(client)
      throw error
    }
  }

  #drop(connecting: Promise<pg.Client>): void {
    if (this.#connecting === connecting) this.#connecting = undefined
    connecting.then(disconnect, () => undefined)
  }

  /** Connects again and reads whether the transaction was committed. Without an answer for 20 seconds it counts as not committed. */
  async #wasCommitted(writes: number): Promise<boolean> {
    const endMs = performance.now() + RESOLVE_MS_MAX
    while (!this.#isClosed && performance.now() < endMs) {
      const connecting = this.#connect()
      try {
        await connecting
        return this.#committed >= writes
      } catch {
        this.#drop(connecting)
        await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS))
      }
    }
    this.#options.log.error('the outcome of a transaction is not known: the database did not answer in time')
    return false
  }
}

async function inOnePiece(client: pg.Client, statements: readonly Statement[]): Promise<Attempt> {
  const answer = await answered(client, sendAtOnce(client, statements))
  return { ...answer, isKnown: !isConnectionError(answer.error) }
}

/** With BEGIN and COMMIT, and a Sync after each statement: a client that stops in between leaves an idle transaction, which the server ends. */
async function oneByOne(client: pg.Client, statements: readonly Statement[]): Promise<Attempt> {
  const all = [sql('BEGIN'), ...statements, sql('COMMIT')]
  const answers = await answered(client, Promise.allSettled(all.map((statement) => send(client, statement))))
  const rows = answers.slice(1, -1).map((answer) => (answer.status === 'fulfilled' ? answer.value.rows : undefined))
  const error = answers.find((answer) => answer.status === 'rejected')?.reason
  const last = answers.at(-1)
  // COMMIT after an error is answered with ROLLBACK.
  return { rows, error, isKnown: last?.status === 'fulfilled' || !isConnectionError(last?.reason) }
}

export interface Transaction {
  all<R>(statement: Statement): Promise<R[]>
  /** Rejects when the transaction was not committed. */
  commit(): Promise<void>
  rollBack(error: unknown): Promise<void>
}
