/** Lets an allowlist name people by any of their ids: remembers which union and user ids belong to an open id. */
import { BoundedMap } from '@sluice/kit'
import { list, members } from '@sluice/kit/foreign-json'
import { isAllowed, type KeyValue } from '@sluice/sdk'
import type { Identity } from './parse.ts'

export const PEOPLE_MAX = 10_000
/** The most people who are known after a restart. */
export const STORED_MAX = 1000

export interface IdentityStore {
  readonly keyValue: KeyValue
  readonly key: string
  /** Only people whom it names by another id than the open id are stored. */
  readonly allow: readonly string[]
}

export class Identities {
  readonly #others = new BoundedMap<string, readonly string[]>(PEOPLE_MAX)
  readonly #stored = new Map<string, readonly string[]>()
  readonly #store: IdentityStore | undefined

  /** Without a store, people are forgotten at the end of the process. */
  constructor(store?: IdentityStore) {
    this.#store = store
  }

  get size(): number {
    return this.#others.size
  }

  /** Reads who is stored: the histories that are read after a restart name only open ids. */
  async load(): Promise<void> {
    for (const [openId, value] of Object.entries(members(await this.#store?.keyValue.get(this.#store.key)))) {
      const others = list(value).filter((id) => typeof id === 'string')
      this.#stored.set(openId, others)
      if (!this.#others.get(openId)) this.#others.set(openId, others)
    }
  }

  /** Each event names all ids of its person, so they are known before the allowlist is checked. Storing them delays no message. */
  learn({ openId, others }: Identity): void {
    if (others.length === 0) return
    this.#others.set(openId, others)
    const named = others.filter((id) => this.#store?.allow.includes(id))
    if (!this.#store || named.length === 0 || this.#stored.get(openId)?.join() === named.join()) return
    this.#stored.delete(openId)
    this.#stored.set(openId, named)
    for (const oldest of this.#stored.keys()) if (this.#stored.size > STORED_MAX) this.#stored.delete(oldest)
    // The next event of the person stores them if this fails.
    this.#store.keyValue.set(this.#store.key, Object.fromEntries(this.#stored)).catch(() => this.#stored.delete(openId))
  }

  /** Whether the allowlist names a person by any id. */
  allows(openId: string): boolean {
    return isAllowed(this.#store?.allow ?? [], openId, undefined, (entry, id) => this.matches(entry, id))
  }

  /** See `Channel.matches`. */
  matches(entry: string, openId: string): boolean {
    return this.#others.get(openId)?.includes(entry) === true
  }
}
