/** The sections and keys that a file may have, in this build and in the features that it leaves out. */

import { nearestName } from '@sluice/kit'
import { type CatalogueId, ROWS, type Row } from '@sluice/sdk'
import type { KeyPath } from '../toml/key-path.ts'
import { childKey, type Key, type KeyReader, readKey } from '../toml/schema-keys.ts'
import type { OwnedSection } from '../types.ts'

export interface KnownTable {
  readonly path: readonly string[]
  /** The keys of all owners of the section. */
  readonly keys: Map<string, Key>
  /** The schema of keys with any other name; undefined when no owner accepts them. */
  rest: Key | undefined
  /** The sections below this one. */
  readonly sections: Map<string, KnownTable>
  /** True when the core or a feature of this build owns the section. */
  owned: boolean
  /** The feature that owns the whole section and that this build leaves out. */
  leftOut: CatalogueId | undefined
  /** Single keys of features that this build leaves out. */
  readonly leftOutKeys: Map<string, CatalogueId>
}

const newTable = (path: readonly string[]): KnownTable => ({
  path,
  keys: new Map(),
  rest: undefined,
  sections: new Map(),
  owned: false,
  leftOut: undefined,
  leftOutKeys: new Map(),
})

export function knownKeys(
  sections: readonly OwnedSection[],
  rows: readonly (readonly [CatalogueId, Row])[] = ROWS,
  keyOf: KeyReader = readKey,
): KnownTable {
  const root = newTable([])
  const known = sections.filter(({ isUnloaded }) => !isUnloaded)
  for (const { section } of known) {
    const table = tableOf(root, section.path)
    const { shape } = keyOf(section.schema)
    table.owned = true
    if (shape.kind !== 'table') continue
    for (const [name, key] of shape.keys) table.keys.set(name, key)
    table.rest = shape.rest ?? table.rest
  }
  const built = new Set<string>(known.map(({ owner }) => owner))
  for (const [id, row] of rows) if (!built.has(id)) addLeftOut(root, id, row)
  return root
}

function addLeftOut(root: KnownTable, id: CatalogueId, row: Row): void {
  for (const path of [...(row.section === undefined ? [] : [row.section]), ...(row.moreSections ?? [])]) {
    const table = tableOf(root, path)
    // Its keys are those in the section that it shares with another feature.
    const keys = path === row.section ? row.keys : undefined
    if (!keys && !table.owned) table.leftOut ??= id
    for (const key of keys ?? []) table.leftOutKeys.set(key, id)
  }
}

function tableOf(root: KnownTable, path: string): KnownTable {
  let table = root
  for (const name of path.split('.')) {
    const next = table.sections.get(name) ?? newTable([...table.path, name])
    table.sections.set(name, next)
    table = next
  }
  return table
}

/** The result of looking up a key path. */
export type Lookup =
  | { readonly kind: 'key'; readonly key: Key; readonly section: KnownTable }
  | { readonly kind: 'section'; readonly section: KnownTable }
  | { readonly kind: 'left_out'; readonly feature: CatalogueId }
  /** The first `at` steps of the path are known; `names` are the names that could follow them. */
  | { readonly kind: 'unknown'; readonly at: number; readonly names: readonly string[] }

export function lookUp(root: KnownTable, path: KeyPath): Lookup {
  let section = root
  for (const [at, step] of path.entries()) {
    const name = typeof step === 'string' ? step : ''
    const key = section.keys.get(name) ?? (section.sections.has(name) || typeof step === 'number' ? undefined : section.rest)
    if (key) return keyBelow(key, section, path, at + 1)
    const leftOut = section.leftOutKeys.get(name)
    if (leftOut) return { kind: 'left_out', feature: leftOut }
    const below = section.sections.get(name)
    if (!below) return { kind: 'unknown', at, names: namesIn(section) }
    if (below.leftOut) return { kind: 'left_out', feature: below.leftOut }
    section = below
  }
  return { kind: 'section', section }
}

function keyBelow(top: Key, section: KnownTable, path: KeyPath, from: number): Lookup {
  let key = top
  for (const [index, step] of path.slice(from).entries()) {
    const next = childKey(key, step)
    if (!next) return { kind: 'unknown', at: from + index, names: key.shape.kind === 'table' ? [...key.shape.keys.keys()] : [] }
    key = next
  }
  return { kind: 'key', key, section }
}

/** Returns every name that a table may have, in this build or with features that it leaves out. */
export const namesIn = ({ keys, sections, leftOutKeys }: KnownTable): string[] => [
  ...keys.keys(),
  ...sections.keys(),
  ...leftOutKeys.keys(),
]

/** Returns the dotted path of the section, at any depth, whose last name equals or resembles `name`. */
export function sectionNamed(root: KnownTable, name: string): string | undefined {
  const paths = new Map<string, string>()
  const collect = ({ sections }: KnownTable): void => {
    for (const [last, section] of sections) {
      if (!paths.has(last)) paths.set(last, section.path.join('.'))
      collect(section)
    }
  }
  collect(root)
  const near = nearestName(name, paths.keys())
  return near === undefined ? undefined : paths.get(near)
}

/** Returns the sections of this build that have a key of this name. */
export function sectionsWith(root: KnownTable, name: string): string[] {
  const below = [...root.sections.values()].flatMap((section) => sectionsWith(section, name))
  return root.keys.has(name) ? [root.path.join('.'), ...below] : below
}
