/** Which name stands for which device: `board_a0`, kept across restarts and bound to the device itself, not to its port. */
import type { KeyValue } from '@sluice/sdk'
import * as v from 'valibot'

/** What tells a device from all others: `usb:2341:0043:<serial number>`, `usb:2341:0043@1-1.2`, `entry:<board>:<path>`. */
export type Identity = string

export interface Alias {
  readonly alias: string
  readonly identity: Identity
  /** Where it was last. */
  readonly path: string | null
  readonly seenAtMs: number
}

export interface Aliases {
  of(identity: Identity): Alias | undefined
  /** The device that was last seen at a path. */
  at(path: string): Alias | undefined
  /** The device of a family that was seen last, but for those. */
  latest(family: string, except: ReadonlySet<string>): Alias | undefined
  /** The name of a device, made if it has none: the family and the first free number. */
  bind(identity: Identity, family: string, path: string | null): Promise<string>
  /** Hands a name on, as from an entry of the configuration to the device that was found for it. */
  rebind(alias: string, identity: Identity, path: string | null): Promise<void>
}

/** Beyond it the name that was not seen for longest is given up. */
export const ALIASES_MAX = 256
const PREFIX = 'alias:'

const aliasSchema = v.object({
  alias: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,31}\d{1,4}$/)),
  identity: v.string(),
  path: v.nullable(v.string()),
  seenAtMs: v.number(),
})

/** `inUse`: names that are not given up. */
export async function loadAliases(keyValue: KeyValue, nowMs: () => number, inUse: (alias: string) => boolean): Promise<Aliases> {
  const known = new Map<string, Alias>()
  for (const { value } of await keyValue.list(PREFIX, ALIASES_MAX)) {
    const parsed = v.safeParse(aliasSchema, value)
    if (parsed.success) known.set(parsed.output.alias, parsed.output)
  }
  const find = (fits: (alias: Alias) => boolean): Alias | undefined => [...known.values()].find(fits)

  const keep = async (alias: Alias): Promise<void> => {
    known.set(alias.alias, alias)
    await keyValue.set(PREFIX + alias.alias, alias)
  }
  const makeRoom = async (): Promise<void> => {
    if (known.size < ALIASES_MAX) return
    const [oldest] = [...known.values()].filter(({ alias }) => !inUse(alias)).sort((a, b) => a.seenAtMs - b.seenAtMs)
    if (!oldest) return
    known.delete(oldest.alias)
    await keyValue.delete(PREFIX + oldest.alias)
  }
  const rebind = async (alias: string, identity: Identity, path: string | null): Promise<void> => {
    const before = known.get(alias)
    // Nothing has changed: a look every few seconds is no write every few seconds.
    if (before?.identity === identity && before.path === path) return
    await keep({ alias, identity, path, seenAtMs: nowMs() })
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
      await keep({ alias, identity, path, seenAtMs: nowMs() })
      return alias
    },
  }
}
