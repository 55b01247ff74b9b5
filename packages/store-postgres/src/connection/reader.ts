/** Reads outside of any transaction, on a few connections that each have several statements under way. */
import type pg from 'pg'
import { answered, type ConnectionSettings, connect, disconnect, type Row, type Statement, send } from './connection.ts'
import { closedError, isConnectionError, storeError } from './postgres-error.ts'

interface Slot {
  connecting: Promise<pg.Client> | undefined
}

/** A statement that meets a broken connection is sent once more on a new one. Rejects with `unavailable` when that fails, too. */
export class Reader {
  readonly #settings: ConnectionSettings
  readonly #slots: readonly Slot[]
  #next = 0
  #isClosed = false

  constructor(settings: ConnectionSettings, connections: number) {
    this.#settings = settings
    this.#slots = Array.from({ length: connections }, () => ({ connecting: undefined }))
  }

  all<R>(statement: Statement): Promise<R[]> {
    return this.#send<R>(statement, 2)
  }

  async #send<R>(statement: Statement, attempts: number): Promise<R[]> {
    const slot = this.#slots[this.#next++ % this.#slots.length]
    for (let attempt = 1; ; attempt++) {
      if (this.#isClosed || !slot) throw closedError()
      const connecting = this.#connect(slot)
      try {
        const client = await connecting
        const { rows } = await answered(client, send(client, statement))
        return rows as R[]
      } catch (error) {
        if (isConnectionError(error)) this.#drop(slot, connecting)
        if (attempt === attempts || !isConnectionError(error)) {
          throw this.#isClosed ? closedError() : storeError(error, 'The store cannot be read now')
        }
      }
    }
  }

  async get<R>(statement: Statement): Promise<R | undefined> {
    return (await this.all<R>(statement))[0]
  }

  /** Resolves to the first row of a statement that writes, which is not sent again when its connection breaks. */
  async once<R>(statement: Statement): Promise<R | undefined> {
    return (await this.#send<R>(statement, 1))[0]
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#slots.map(({ connecting }) => connecting?.then(disconnect, () => undefined)))
  }

  #connect(slot: Slot): Promise<pg.Client> {
    slot.connecting ??= connect(this.#settings, { pipeline: true })
    return slot.connecting
  }

  #drop(slot: Slot, connecting: Promise<pg.Client>): void {
    // Each statement that was under way reports the same broken connection.
    if (slot.connecting !== connecting) return
    slot.connecting = undefined
    connecting.then(disconnect, () => undefined)
  }
}

export type { Row }
