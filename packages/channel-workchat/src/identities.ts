/** Lets an allowlist name people by any of their ids: remembers which union and user ids belong to an open id. */
import { BoundedMap } from '@sluice/kit'
import type { Identity } from './parse.ts'

export const PEOPLE_MAX = 10_000

export class Identities {
  readonly #others = new BoundedMap<string, readonly string[]>(PEOPLE_MAX)

  get size(): number {
    return this.#others.size
  }

  /** Each event names all ids of its person, so they are known before the allowlist is checked. */
  learn({ openId, others }: Identity): void {
    if (others.length > 0) this.#others.set(openId, others)
  }

  /** See `Channel.matches`. */
  matches(entry: string, openId: string): boolean {
    return this.#others.get(openId)?.includes(entry) === true
  }
}
