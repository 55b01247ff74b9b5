/** Finds names in a file that its schema does not have, and suggests the nearest name. */

import { nearestName } from '@sluice/kit'
import { formatKeyPath, formatName, type KeyPath } from './key-path.ts'
import type { Finding } from './problem.ts'
import type { Key } from './schema-keys.ts'

export const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)

/** Names that schemas drop silently. */
export const RESERVED: ReadonlySet<string> = new Set(['__proto__', 'prototype', 'constructor'])

/** Finds every unknown name at or below the value at `path`. */
export function unknownKeys(value: unknown, { shape }: Key, path: KeyPath): Finding[] {
  if (shape.kind === 'list' && Array.isArray(value)) return value.flatMap((item, index) => unknownKeys(item, shape.item, [...path, index]))
  if (shape.kind !== 'table' || !isTable(value)) return []
  return Object.entries(value).flatMap(([name, child]) => {
    const at = [...path, name]
    const key = shape.keys.get(name) ?? (RESERVED.has(name) ? undefined : shape.rest)
    return key ? unknownKeys(child, key, at) : [{ path: at, at: 'name', message: unknownKey(at, shape.keys.keys()) }]
  })
}

/** Returns the sentence for a key that no schema has. */
export function unknownKey(path: KeyPath, names: Iterable<string>): string {
  const near = nearestName(String(path.at(-1)), names)
  return `\`${formatKeyPath(path)}\` is not a known key${near === undefined ? '' : `; did you mean \`${formatName(near)}\`?`}`
}
