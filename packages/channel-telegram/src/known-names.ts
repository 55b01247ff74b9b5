/**
 * Binds the user names on the allowlist to accounts. A name can be given up and taken by another account, so each name stands
 * for the one account that used it first, for as long as the name is on the list.
 */
import type { Host, KeyValue, Logger } from '@sluice/sdk'

const PREFIX = 'name:'
const NAMES_MAX = 10_000

/** Returns one form for `@Ada` and `ada`. A numeric id stays as it is. */
export const normaliseUser = (user: string): string => user.trim().replace(/^@+/, '').toLowerCase()

export class KnownNames {
  readonly #keyValue: KeyValue
  readonly #log: Logger
  readonly #listed: ReadonlySet<string>
  readonly #accounts = new Map<string, string>()
  /** Names whose use by another account was logged. */
  readonly #reported = new Set<string>()

  constructor({ keyValue, log }: Host, allow: readonly string[]) {
    this.#keyValue = keyValue
    this.#log = log
    this.#listed = new Set(allow.map(normaliseUser).filter((entry) => entry !== '*' && !/^\d*$/.test(entry)))
  }

  /**
   * Loads the stored names, and deletes each name that left the list so that another account can take it. Call it before
   * `learn`.
   */
  async load(): Promise<void> {
    for (const { key, value } of await this.#keyValue.list(PREFIX, NAMES_MAX)) {
      const name = key.slice(PREFIX.length)
      if (!this.#listed.has(name)) await this.#keyValue.delete(key)
      else if (typeof value === 'string') this.#accounts.set(name, value)
    }
  }

  /** Binds a listed name to the account `id` if it is not bound yet. The binding is durable once this resolves. */
  async learn(id: string, username: string): Promise<void> {
    const name = normaliseUser(username)
    if (!this.#listed.has(name)) return
    const first = this.#accounts.get(name) ?? (await this.#bind(name, id))
    if (first !== id && !this.#reported.has(name)) {
      this.#reported.add(name)
      this.#log.warn('another account uses an allowlist name and is not allowed', { name, sender: id, first })
    }
  }

  /** Binds the name unless another process has. Returns the account that it is bound to. */
  async #bind(name: string, id: string): Promise<string> {
    const isFirst = await this.#keyValue.swap(PREFIX + name, undefined, id)
    const account = isFirst ? id : String(await this.#keyValue.get(PREFIX + name))
    this.#accounts.set(name, account)
    if (isFirst) this.#log.info('bound an allowlist name to an account', { name, sender: id })
    return account
  }

  /** See `Channel.matches`. */
  matches(entry: string, id: string): boolean {
    return this.#accounts.get(normaliseUser(entry)) === id
  }
}
