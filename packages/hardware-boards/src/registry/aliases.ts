/** The stable names of devices, such as `board_a0`. A name is bound to the device, not to its port, and survives restarts. */
import type { KeyValue } from '@sluice/sdk'
import * as v from 'valibot'

/** Identifies a device: `usb:2341:0043:<serial number>`, `usb:2341:0043@1-1.2` or `entry:<transport>:<board>:<path>`. */
export type Identity = string

export interface Alias {
  readonly alias: string
  readonly identity: Identity
  /** The last known path of the device. */
  readonly path: string | null
  readonly seenAtMs: number
}

/** When there are more, the alias that was not seen for the longest time is forgotten. */
export const ALIASES_MAX = 256
const PREFIX = 'alias:'

const aliasSchema = v.object({
  alias: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,31}\d{1,4}$/)),
  identity: v.string(),
  path: v.nullable(v.string()),
  seenAtMs: v.number(),
})

export class Aliases {
  readonly #keyValue: KeyValue
  readonly #nowMs: () => number
  readonly #isInUse: (alias: string) => boolean
  readonly #known = new Map<string, Alias>()

  private constructor(keyValue: KeyValue, nowMs: () => number, isInUse: (alias: string) => boolean) {
    this.#keyValue = keyValue
    this.#nowMs = nowMs
    this.#isInUse = isInUse
  }

  /** Loads the stored aliases. Aliases for which `isInUse` returns true are never forgotten. */
  static async load(keyValue: KeyValue, nowMs: () => number, isInUse: (alias: string) => boolean): Promise<Aliases> {
    const aliases = new Aliases(keyValue, nowMs, isInUse)
    for (const { value } of await keyValue.list(PREFIX, ALIASES_MAX)) {
      const parsed = v.safeParse(aliasSchema, value)
      if (parsed.success) aliases.#known.set(parsed.output.alias, parsed.output)
    }
    return aliases
  }

  find(identity: Identity): Alias | undefined {
    return [...this.#known.values()].find((alias) => alias.identity === identity)
  }

  /** Returns the alias of the device that was last seen at a path. */
  latestAt(path: string): Alias | undefined {
    return this.#latest((alias) => alias.path === path)
  }

  /** Returns the alias of the device of a family that was seen last, leaving out the aliases in `except`. */
  latestOf(family: string, except: ReadonlySet<string>): Alias | undefined {
    return this.#latest(({ alias }) => alias.replace(/(?<!\d)\d+$/, '') === family && !except.has(alias))
  }

  /** Returns the alias of a device. A new device gets its family and the first free number. */
  async bind(identity: Identity, family: string, path: string | null): Promise<string> {
    const before = this.find(identity)
    if (before) {
      await this.rebind(before.alias, identity, path)
      return before.alias
    }
    await this.#makeRoom()
    for (let number = 0; ; number++) {
      const alias = `${family}${number}`
      if (!this.#known.has(alias)) await this.#claim({ alias, identity, path, seenAtMs: this.#nowMs() })
      if (this.#known.get(alias)?.identity === identity) return alias
    }
  }

  /** Passes an alias on, for example from an entry of the configuration to the device that was found for it. */
  async rebind(alias: string, identity: Identity, path: string | null): Promise<void> {
    const before = this.#known.get(alias)
    // Skips the write when nothing has changed, because devices are scanned every few seconds.
    if (before?.identity === identity && before.path === path) return
    await this.#store({ alias, identity, path, seenAtMs: this.#nowMs() })
  }

  #latest(fits: (alias: Alias) => boolean): Alias | undefined {
    return [...this.#known.values()].filter(fits).sort((a, b) => b.seenAtMs - a.seenAtMs)[0]
  }

  /** Stores a new alias, unless another process has given it out; then its device is known afterwards. */
  async #claim(alias: Alias): Promise<void> {
    const key = PREFIX + alias.alias
    for (;;) {
      const stored = await this.#keyValue.get(key)
      const taken = v.safeParse(aliasSchema, stored)
      if (taken.success || (await this.#keyValue.swap(key, stored, alias))) {
        this.#known.set(alias.alias, taken.success ? taken.output : alias)
        return
      }
    }
  }

  async #store(alias: Alias): Promise<void> {
    this.#known.set(alias.alias, alias)
    await this.#keyValue.set(PREFIX + alias.alias, alias)
  }

  async #makeRoom(): Promise<void> {
    if (this.#known.size < ALIASES_MAX) return
    const [oldest] = [...this.#known.values()].filter(({ alias }) => !this.#isInUse(alias)).sort((a, b) => a.seenAtMs - b.seenAtMs)
    if (!oldest) return
    this.#known.delete(oldest.alias)
    await this.#keyValue.delete(PREFIX + oldest.alias)
  }
}
