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

export interface Aliases {
  of(identity: Identity): Alias | undefined
  /** Returns the alias of the device that was last seen at a path. */
  at(path: string): Alias | undefined
  /** Returns the alias of the device of a family that was seen last, leaving out the aliases in `except`. */
  latest(family: string, except: ReadonlySet<string>): Alias | undefined
  /** Returns the alias of a device. A new device gets its family and the first free number. */
  bind(identity: Identity, family: string, path: string | null): Promise<string>
  /** Passes an alias on, for example from an entry of the configuration to the device that was found for it. */
  rebind(alias: string, identity: Identity, path: string | null): Promise<void>
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

/** Loads the stored aliases. Aliases for which `isInUse` returns true are never forgotten. */
export async function loadAliases(keyValue: KeyValue, nowMs: () => number, isInUse: (alias: string) => boolean): Promise<Aliases> {
  const known = new Map<string, Alias>()
  for (const { value } of await keyValue.list(PREFIX, ALIASES_MAX)) {
    const parsed = v.safeParse(aliasSchema, value)
    if (parsed.success) known.set(parsed.output.alias, parsed.output)
  }
  const find = (fits: (alias: Alias) => boolean): Alias | undefined => [...known.values()].find(fits)

  const store = async (alias: Alias): Promise<void> => {
    known.set(alias.alias, alias)
    await keyValue.set(PREFIX + alias.alias, alias)
  }
  const makeRoom = async (): Promise<void> => {
    if (known.size < ALIASES_MAX) return
    const [oldest] = [...known.values()].filter(({ alias }) => !isInUse(alias)).sort((a, b) => a.seenAtMs - b.seenAtMs)
    if (!oldest) return
    known.delete(oldest.alias)
    await keyValue.delete(PREFIX + oldest.alias)
  }
  const rebind = async (alias: string, identity: Identity, path: string | null): Promise<void> => {
    const before = known.get(alias)
    // Skips the write when nothing has changed, because devices are scanned every few seconds.
    if (before?.identity === identity && before.path === path) return
    await store({ alias, identity, path, seenAtMs: nowMs() })
  }

  return {
    of: (identity) => find((alias) => alias.identity === identity),
    at: (path) => [...known.values()].filter((alias) => alias.path === path).sort((a, b) => b.seenAtMs - a.seenAtMs)[0],
    latest: (family, except) =>
      [...known.values()]
        .filter(({ alias }) => alias.replace(/(?<!\d)\d+$/, '') === family && !except.has(alias))
        .sort((a, b) => b.seenAtMs - a.seenAtMs)[0],
    rebind,
    async bind(identity, family, path) {
      const before = find((alias) => alias.identity === identity)
      if (before) {
        await rebind(before.alias, identity, path)
        return before.alias
      }
      await makeRoom()
      let number = 0
      while (known.has(`${family}${number}`)) number++
      const alias = `${family}${number}`
      await store({ alias, identity, path, seenAtMs: nowMs() })
      return alias
    },
  }
}
