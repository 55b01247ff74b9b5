/** Lists every key of every section for the documentation. */
import { describeKey } from '../toml/describe-key.ts'
import { formatName } from '../toml/key-path.ts'
import { type Key, readKey } from '../toml/schema-keys.ts'
import type { OwnedSection } from '../types.ts'

export interface ReferenceRow {
  readonly owner: OwnedSection['owner']
  readonly section: string
  /** The path below the section, such as `fallback[].model` or `prices.<name>.input`. */
  readonly key: string
  /** The accepted values in words, such as `a whole number between 0 and 65535`. */
  readonly type: string
  readonly required: boolean
  /** The default; absent if the key has no default. */
  readonly fallback?: unknown
  readonly env: readonly string[]
  /** True when the variable overrides the file. */
  readonly envWins: boolean
  readonly secret: boolean
  readonly meaning?: string
}

/** Returns the rows in the order of the sections and schemas. Keys that two owners share are listed once, for the first. */
export function configReference(sections: readonly OwnedSection[]): ReferenceRow[] {
  const rows = new Map<string, ReferenceRow>()
  for (const { owner, section } of sections) {
    const { shape } = readKey(section.schema)
    if (shape.kind !== 'table') continue
    // In a section of named tables, each table is a section to its reader.
    const isNamed = shape.rest?.shape.kind === 'table'
    const tables = [
      { path: section.path, shape },
      ...(isNamed && shape.rest ? [{ path: `${section.path}.<name>`, shape: shape.rest.shape }] : []),
    ]
    for (const { path: header, shape: table } of tables) {
      if (table.kind !== 'table') continue
      for (const { path, key } of [...table.keys].flatMap(([name, found]) => keysBelow(formatName(name), found))) {
        const row = `${header}.${path}`
        if (!rows.has(row)) rows.set(row, { owner, section: header, key: path, ...facts(key) })
      }
    }
  }
  return [...rows.values()]
}

const facts = (key: Key): Omit<ReferenceRow, 'owner' | 'section' | 'key'> => ({
  type: describeKey(key),
  required: !key.optional,
  ...(key.fallback !== undefined && { fallback: key.fallback }),
  env: key.metadata.env ?? [],
  envWins: key.metadata.envWins ?? false,
  secret: key.metadata.secret ?? false,
  ...(key.meaning !== undefined && { meaning: key.meaning }),
})

/** Returns the key and then the keys of the tables below it. */
function keysBelow(path: string, key: Key): { readonly path: string; readonly key: Key }[] {
  const { shape } = key
  const self = { path, key }
  if (shape.kind === 'list') return [self, ...keysBelow(`${path}[]`, shape.item).slice(1)]
  if (shape.kind !== 'table') return [self]
  const named = [...shape.keys].flatMap(([name, child]) => keysBelow(`${path}.${formatName(name)}`, child))
  return [self, ...named, ...(shape.rest ? keysBelow(`${path}.<name>`, shape.rest) : [])]
}
