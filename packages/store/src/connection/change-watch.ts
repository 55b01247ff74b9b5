/** Notices what other processes write to the file. */
import { every } from '@sluice/kit'
import type { Clock, Logger, StoreChange } from '@sluice/sdk'
import type { Database } from './database.ts'

const LOOK_EVERY_MS = 1000
/** The file does not tell which rows a commit changed. */
const ANYTHING: StoreChange = { shards: null }

type Listener = (change: StoreChange) => void

export interface ChangeWatchOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Called before the listeners. */
  readonly onForeignCommit: () => void
}

/** Looks at the file once a second, and only while there are listeners. */
export class ChangeWatch {
  readonly #db: Database
  readonly #options: ChangeWatchOptions
  readonly #listeners = new Set<{ readonly notify: Listener }>()
  #looking = new AbortController()
  #version = 0

  constructor(db: Database, options: ChangeWatchOptions) {
    this.#db = db
    this.#options = options
  }

  onChange(notify: Listener): () => void {
    const version = this.#db.read(() => this.#db.foreignVersion())
    if (this.#listeners.size === 0) this.#start(version)
    const listener = { notify }
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#looking.abort()
    }
  }

  close(): void {
    this.#listeners.clear()
    this.#looking.abort()
  }

  #start(version: number): void {
    this.#version = version
    this.#looking = new AbortController()
    void every(this.#options.clock, LOOK_EVERY_MS, this.#looking.signal, () => this.#look())
  }

  #look(): void {
    try {
      const version = this.#db.read(() => this.#db.foreignVersion())
      if (version === this.#version) return
      this.#options.onForeignCommit()
      this.#version = version
    } catch (error) {
      // The next look repeats this one.
      this.#options.log.warn('store cannot be watched for changes of other processes', { error })
      return
    }
    for (const { notify } of [...this.#listeners]) notify(ANYTHING)
  }
}
