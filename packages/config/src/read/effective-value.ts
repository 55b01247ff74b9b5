/** Freezes and hashes the values of a section. */
import { Secret, sha256Hex } from '@sluice/sdk'

/** Freezes plain tables and lists at every depth. */
export function deepFreeze<Value>(value: Value): Value {
  if (!isPlain(value) || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const child of Object.values(value)) deepFreeze(child)
  return value
}

/** Returns the SHA-256 of a value, secrets included. Equal values have equal hashes in any order of keys. */
export const hashValue = (value: unknown): string => sha256Hex(canonical(value))

/** Returns a canonical text, which contains the secrets and must never be shown. */
function canonical(value: unknown): string {
  if (value instanceof Secret) return `secret:${JSON.stringify(value.reveal())}`
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value instanceof Map || value instanceof Set) return `${value.constructor.name}${canonical([...value])}`
  if (!isPlain(value)) return typeof value === 'string' ? JSON.stringify(value) : `${typeof value}:${String(value)}`
  const entries = Object.entries(value).filter(([, child]) => child !== undefined)
  const sorted = entries.toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${sorted.map(([name, child]) => `${JSON.stringify(name)}:${canonical(child)}`).join(',')}}`
}

const isPlain = (value: unknown): value is object => {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === null || prototype === Object.prototype
}
