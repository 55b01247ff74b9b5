/** Notices what other processes write: each connection for writes counts its commits. */
import { every } from '@sluice/kit'
import type { Clock, Logger, StoreChange } from '@sluice/sdk'
import { sql } from './connection.ts'
import { closedError } from './postgres-error.ts'
import type { Reader } from './reader.ts'

const LOOK_EVERY_MS = 1000
const COUNT = 'SELECT coalesce(sum(writes), 0)::bigint AS writes FROM connections WHERE process <> $1'
/** The counts do not tell which rows a commit changed. */
const ANYTHING: StoreChange = { shards: null }

type Listener = (change: StoreChange) => void

export interface ForeignCommitsOptions {
  readonly reader: Reader
  readonly process: string
  readonly clock: Clock
  readonly log: Logger
  /** Called before the listeners. */
  readonly onForeignCommit: () => Promise<void>
}

/** Looks once a second, and only while there are listeners. */
export class ForeignCommits {
  readonly #options: ForeignCommitsOptions
  readonly #listeners = new Set<{ readonly notify: Listener }>()
  #looking = new AbortController()
  /** The count from which on commits are news; undefined until it is known. */
  #seen: Promise<number | undefined> = Promise.resolve(undefined)
  #isClosed = false

  constructor(options: ForeignCommitsOptions) {
    this.#options = options
  }

  /** Resolves to a number that changes with every commit of another process, but not with this one's. */
  async read(): Promise<number> {
    const row = await this.#options.reader.get<{ writes: number }>(sql(COUNT, this.#options.process))
    return row?.writes ?? 0
  }

  onChange(notify: Listener): () => void {
    if (this.#isClosed) throw closedError()
    if (this.#listeners.size === 0) this.#start()
    const listener = { notify }
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#looking.abort()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#listeners.clear()
    this.#looking.abort()
  }

  #start(): void {
    // Without an answer, the first look finds news at worst.
    this.#seen = this.read().catch(() => undefined)
    this.#looking = new AbortController()
    void every(this.#options.clock, LOOK_EVERY_MS, this.#looking.signal, () => this.look())
  }

  /** Passes on a change that another process has reported. */
  notify(change: StoreChange): void {
    for (const { notify } of [...this.#listeners]) notify(change)
  }

  /** Notifies the listeners if another process has written. Never rejects. */
  async look(): Promise<void> {
    const seen = this.#seen
    try {
      const [before, now] = [await seen, await this.read()]
      if (now === before || seen !== this.#seen || this.#looking.signal.aborted) return
      // At once, so that a look at the same time gives no second notice.
      this.#seen = Promise.resolve(now)
      await this.#options.onForeignCommit()
    } catch (error) {
      // The next look repeats this one.
      this.#seen = seen
      if (!this.#isClosed) this.#options.log.warn('store cannot be watched for changes of other processes', { error })
      return
    }
    this.notify(ANYTHING)
  }
}
