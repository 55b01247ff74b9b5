/** State that tools may share (§1, shared-state contract items 1 and 4). */
import type { ClientId } from '@sluice/sdk'

/**
 * A named, cloneable handle around one value behind a read-write lock. Make it outside the tool and hand it in at
 * construction; copying the reference is the clone.
 *
 * Concurrency contract: any number of `read`s run side by side; an `update` runs alone, after the reads and updates asked
 * for before it and before those asked for after it. A callback that throws releases the lock, and its error reaches only
 * its own caller; what an update has changed in place by then stays changed, so return a new value where that matters.
 * Calling `update` on the same handle inside a callback never ends: the outer call still holds the lock.
 */
export class Shared<T> {
  readonly name: string
  #value: T
  /** Ends when the last `update` asked for has ended. */
  #written: Promise<void> = Promise.resolve()
  /** Reads running since that update. */
  #reads = new Set<Promise<void>>()

  constructor(name: string, value: T) {
    this.name = name
    this.#value = value
  }

  /** Runs `use` on the value while no update runs. */
  read<R>(use: (value: T) => R | Promise<R>): Promise<R> {
    const result = this.#written.then(() => use(this.#value))
    const ended = settled(result)
    const reads = this.#reads
    reads.add(ended)
    void ended.then(() => reads.delete(ended))
    return result
  }

  /** Replaces the value by what `change` returns, while nothing else reads or writes. */
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
 * State kept apart for each client: credentials, quotas, counters, session data. A tool that keeps something for its clients keeps it
 * in one of these and nowhere else. Holds at most `clientsMax` clients; the order is that of `keep`. Synchronous, so no two
 * clients' changes can interleave inside one call.
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

  /** Keeps the state of a client, as the newest. Returns the state of the oldest client if it had to make room. */
  keep(client: ClientId, state: T): T | undefined {
    this.#states.delete(client)
    const [oldest] = this.#states.size >= this.#clientsMax ? this.#states.keys() : []
    const dropped = oldest === undefined ? undefined : this.forget(oldest)
    this.#states.set(client, state)
    return dropped
  }

  /** Forgets one client, at disconnect or revocation. Returns its state. */
  forget(client: ClientId): T | undefined {
    const state = this.#states.get(client)
    this.#states.delete(client)
    return state
  }

  /** Oldest first. */
  entries(): IterableIterator<[ClientId, T]> {
    return this.#states.entries()
  }

  /** Forgets every client, as after a credential rotation. Returns their states, oldest first. */
  clear(): T[] {
    const states = [...this.#states.values()]
    this.#states.clear()
    return states
  }
}
