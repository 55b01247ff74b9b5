/**
 * The durable state of the device in the encrypted store of the daemon: keys, sessions, the position of the sync and messages that wait
 * for their key. Changes are collected and written in one commit, so that a crash leaves the state of one moment.
 */
import { AppError, type SecretStore } from '@sluice/sdk'

/** More records would mean a fault, such as a room key that is stored under changing names. */
const RECORDS_MAX = 200_000

export class Vault {
  readonly #secrets: SecretStore
  /** Changes that are not durable; undefined deletes a record. */
  #pending = new Map<string, string | undefined>()
  /** Settles when the last write has ended. */
  #writing: Promise<void> = Promise.resolve()
  /** Returns false if another process may hold the device. */
  mayWrite: () => boolean = () => true

  constructor(secrets: SecretStore) {
    this.#secrets = secrets
  }

  /** Reads the records whose names begin with `prefix`. Call it before the first change. */
  async read(prefix: string): Promise<ReadonlyMap<string, string>> {
    const records = await this.#secrets.list(prefix, RECORDS_MAX)
    return new Map(records.map(({ name, value }) => [name, value]))
  }

  set(name: string, value: string | undefined): void {
    this.#pending.set(name, value)
  }

  /** Sets a record to the JSON of a value. */
  put(name: string, value: unknown): void {
    this.set(name, JSON.stringify(value))
  }

  /** Resolves once all changes up to now are durable. Throws `unavailable` if they could not be stored; a later call tries again. */
  flush(): Promise<void> {
    const write = (): Promise<void> => this.#write()
    this.#writing = this.#writing.then(write, write)
    return this.#writing
  }

  async #write(): Promise<void> {
    if (this.#pending.size === 0) return
    if (!this.mayWrite()) throw new AppError('unavailable', 'Another process has taken over the channel fedchat')
    const changes = this.#pending
    this.#pending = new Map()
    await this.#secrets.setAll(changes).catch((error: unknown) => {
      // Changes that came meanwhile are newer.
      this.#pending = new Map([...changes, ...this.#pending])
      throw error
    })
  }
}
