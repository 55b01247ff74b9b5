/** Finds keys whose values must not be shown. */
import type { Key } from './schema-keys.ts'

/** Tells whether the key or a key below it is a secret. */
export function hasSecret({ shape, metadata }: Key): boolean {
  if (metadata.secret) return true
  if (shape.kind === 'list') return hasSecret(shape.item)
  if (shape.kind !== 'table') return false
  return [...shape.keys.values(), ...(shape.rest ? [shape.rest] : [])].some(hasSecret)
}
