/**
 * Who the names on the allowlist are. A name can be given up and taken by somebody else, so it stands for the one account
 * that used it first, for as long as it is on the list.
 */
import type { Host } from '@sluice/sdk'

export interface KnownNames {
  /** To be called before anything is learnt; names that left the list are forgotten, so that they can be given anew. */
  load(): Promise<void>
  /** Somebody wrote under this name. What is learnt is durable once this resolves. */
  learn(id: string, username: string): Promise<void>
  /** See `Channel.matches`. */
  matches(entry: string, id: string): boolean
}

const PREFIX = 'name:'
/** Names an operator wrote down. */
const NAMES_MAX = 10_000

/** One form for `@Ada` and `ada`; a numeric id stays what it is. */
export const normaliseUser = (user: string): string => user.trim().replace(/^@+/, '').toLowerCase()

export function createKnownNames({ keyValue, log }: Pick<Host, 'keyValue' | 'log'>, allow: readonly string[]): KnownNames {
  const listed = new Set(allow.map(normaliseUser).filter((entry) => entry !== '*' && !/^\d*$/.test(entry)))
  const ids = new Map<string, string>()
  const told = new Set<string>()
  return {
    async load() {
      for (const { key, value } of await keyValue.list(PREFIX, NAMES_MAX)) {
        const name = key.slice(PREFIX.length)
        if (!listed.has(name)) await keyValue.delete(key)
        else if (typeof value === 'string') ids.set(name, value)
      }
    },
    async learn(id, username) {
      const name = normaliseUser(username)
      if (!listed.has(name)) return
      const known = ids.get(name)
      if (known === undefined) {
        await keyValue.set(PREFIX + name, id)
        ids.set(name, id)
        log.info('a name on the allowlist stands for this account from now on', { name, sender: id })
      } else if (known !== id && !told.has(name)) {
        told.add(name)
        log.warn('a name on the allowlist is used by another account, which is not let in', { name, sender: id, first: known })
      }
    },
    matches: (entry, id) => ids.get(normaliseUser(entry)) === id,
  }
}
