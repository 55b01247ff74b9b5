/** State that tools may share; see `docs/contract.md#tools`. */
import type { ClientId } from '@sluice/sdk'

/**
 * A named, cloneable handle of one value behind a read-write lock. Create it outside the tool and pass it to the tool's
 * constructor; copying the reference clones it.
 *
 * Concurrency contract: any number of `read`s run at the same time. An `update` runs alone, after all earlier calls and
 * before all later ones. A callback that throws releases the lock, and its error reaches only its own caller. Changes that a
 * failed update made in place remain, so return a new value if that matters. An `update` of the same handle inside a callback
 * never ends, because the outer call still holds the lock.
 */
export class Shared<T> {
  readonly name: string
  #value: T
  /** Resolves when the last requested `update` has ended. */
  #written: Promise<void> = Promise.resolve()
  /** The reads requested after that update. */
  #reads = new Set<Promise<void>>()

  constructor(name: string, value: T) {
    this.name = name
    this.#value = value
  }

  /** Runs `use` with the value while no update runs. */
  read<R>(use: (value: T) => R | Promise<R>): Promise<R> {
    const result = this.#written.then(() => use(this.#value))
    const ended = settled(result)
    const reads = this.#reads
    reads.add(ended)
    void ended.then(() => reads.delete(ended))
    return result
  }

  /** Replaces the value by the result of `change`, while no other call reads or updates it. */
  update(change: (value: T) => T | Promise<T>): Promise<T> {
    const before = Promise.all([this.#written, ...this.#reads])
    const result = before.then(async () => {
      this.#value = await change(this.#value)
      return this.#value
    })
    this.#reads = new Set()
    this.#written = settled(result)
    return result
  }
}

const settled = (promise: Promise<unknown>): Promise<void> =>
  promise.then(
    () => undefined,
    () => undefined,
  )

/**
 * Separate state for each client: credentials, quotas, counters, session data. A tool stores all data of its clients here.
 * Holds at most `clientsMax` clients, in the order of `keep`. All methods are synchronous, so changes of two clients never
 * interleave.
 */
export class PerClient<T> {
  readonly name: string
  readonly #clientsMax: number
  readonly #states = new Map<ClientId, T>()

  constructor(name: string, clientsMax: number) {
    this.name = name
    this.#clientsMax = clientsMax
  }

  get size(): number {
    return this.#states.size
  }

  find(client: ClientId): T | undefined {
    return this.#states.get(client)
  }

  /** Stores the state of a client as the newest. Returns the state of the oldest client if it was dropped to make room. */
  keep(client: ClientId, state: T): T | undefined {
    this.#states.delete(client)
    const [oldest] = this.#states.size >= this.#clientsMax ? this.#states.keys() : []
    const dropped = oldest === undefined ? undefined : this.forget(oldest)
    this.#states.set(client, state)
    return dropped
  }

  /** Removes one client, after a disconnect or a revocation. Returns its state. */
  forget(client: ClientId): T | undefined {
    const state = this.#states.get(client)
    this.#states.delete(client)
    return state
  }

  /** Returns all clients with their states, oldest first. */
  entries(): IterableIterator<[ClientId, T]> {
    return this.#states.entries()
  }

  /** Removes every client, for example after a credential rotation. Returns their states, oldest first. */
  clear(): T[] {
    const states = [...this.#states.values()]
    this.#states.clear()
    return states
  }
}
