/** Which keys may not be quoted. */
import type { Key } from './schema-keys.ts'

/** True if the key, or anything below it, is a secret. */
export function hasSecret({ shape, metadata }: Key): boolean {
  if (metadata.secret) return true
  if (shape.kind === 'list') return hasSecret(shape.item)
  if (shape.kind !== 'table') return false
  return [...shape.keys.values(), ...(shape.rest ? [shape.rest] : [])].some(hasSecret)
}
