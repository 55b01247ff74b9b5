/** The connection over which the processes of a database send each other notices. A notice that is lost only delays what it is about. */

import type { Logger } from '@sluice/sdk'
import pg from 'pg'
import { answered, type ConnectionSettings, connect, DEFAULT_SCHEMA, disconnect } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { isConnectionError, storeError } from '../connection/postgres-error.ts'
import type { WorkNotice } from '../connection/work-notices.ts'

/** A line that was lost is opened again after this time. */
const AGAIN_MS = 1_500

/** `want`: a later process of a node asks an earlier one to release these leases. `free`: leases were released, or shares have changed. */
export type Notice = { readonly what: 'want' | 'free'; readonly epochs: readonly number[] } | WorkNotice

export const FREED: Notice = { what: 'free', epochs: [] }

export interface NoticeLineOptions {
  readonly settings: ConnectionSettings
  readonly db: Database
  readonly log: Logger
  /** True once the process gives everything up. */
  readonly isClosed: () => boolean
  /** Gets each notice. */
  readonly heard: (notice: Notice) => void
}

export class NoticeLine {
  readonly channel: string
  readonly #options: NoticeLineOptions
  #listening: Promise<pg.Client> | undefined

  constructor(options: NoticeLineOptions) {
    this.#options = options
    this.channel = `sluice_${options.settings.schema ?? DEFAULT_SCHEMA}`
  }

  /** Sends a notice to all processes, such as that leases were released. Never rejects. */
  async notify(notice: Notice): Promise<void> {
    await this.#options.db.all('SELECT pg_notify($1, $2)', this.channel, JSON.stringify(notice)).catch(() => undefined)
  }

  /** Begins to receive notices. */
  async listen(): Promise<void> {
    await this.#listen()
  }

  /** Asks the server over the line, so that one that is dead is noticed. Never rejects. */
  probe(): void {
    void this.#listening?.then((client) => answered(client, client.query('SELECT 1'))).catch(() => undefined)
  }

  async close(): Promise<void> {
    await this.#listening?.then(disconnect, () => undefined)
  }

  #listenAgain(): void {
    if (this.#options.isClosed()) return
    setTimeout(() => void this.#listen().catch(() => this.#listenAgain()), AGAIN_MS).unref()
  }

  #listen(): Promise<pg.Client> {
    this.#listening ??= this.#connect().catch((error: unknown) => {
      this.#listening = undefined
      throw storeError(error, 'The store cannot be read now')
    })
    return this.#listening
  }

  async #connect(): Promise<pg.Client> {
    const client = await connect(this.#options.settings)
    client.on('notification', ({ payload }) => this.#heard(payload ?? ''))
    client.on('end', () => {
      this.#listening = undefined
      // Without it, notices come late but leases stay right.
      this.#listenAgain()
    })
    await client.query(`LISTEN ${pg.escapeIdentifier(this.channel)}`)
    return client
  }

  #heard(payload: string): void {
    try {
      this.#options.heard(JSON.parse(payload) as Notice)
    } catch (error) {
      this.#options.log.warn('a notice of another process cannot be read', { error: isConnectionError(error) ? undefined : error })
    }
  }
}
