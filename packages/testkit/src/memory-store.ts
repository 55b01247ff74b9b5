/** In-memory key-value and secret stores for tests. */
import { isDeepStrictEqual } from 'node:util'
import type { KeyValue, SecretStore } from '@sluice/sdk'

/** Stores each value as a JSON copy, as a real store does. */
export function memoryKeyValue(): KeyValue {
  const kept = new Map<string, string>()
  return {
    async get(key) {
      const json = kept.get(key)
      return json === undefined ? undefined : JSON.parse(json)
    },
    async set(key, value) {
      kept.set(key, JSON.stringify(value))
    },
    async delete(key) {
      kept.delete(key)
    },
    async swap(key, before, after) {
      const json = kept.get(key)
      const expected = before === undefined ? undefined : JSON.parse(JSON.stringify(before))
      if (!isDeepStrictEqual(json === undefined ? undefined : JSON.parse(json), expected)) return false
      if (after === undefined) kept.delete(key)
      else kept.set(key, JSON.stringify(after))
      return true
    },
    async setAll(changes) {
      for (const [key, value] of changes) {
        if (value === undefined) kept.delete(key)
        else kept.set(key, JSON.stringify(value))
      }
    },
    async list(prefix, limit) {
      const keys = [...kept.keys()].filter((key) => key.startsWith(prefix)).sort()
      return keys.slice(0, limit).map((key) => ({ key, value: JSON.parse(kept.get(key) ?? 'null') }))
    },
  }
}

/** Creates a secret store; `initial` is its content by name. */
export function memorySecrets(initial: Readonly<Record<string, string>> = {}): SecretStore {
  const kept = new Map(Object.entries(initial))
  return {
    get: async (name) => kept.get(name),
    async set(name, value) {
      kept.set(name, value)
    },
    async delete(name) {
      kept.delete(name)
    },
    async swap(name, before, after) {
      if (kept.get(name) !== before) return false
      if (after === undefined) kept.delete(name)
      else kept.set(name, after)
      return true
    },
    async setAll(changes) {
      for (const [name, value] of changes) {
        if (value === undefined) kept.delete(name)
        else kept.set(name, value)
      }
    },
    async list(prefix, limit) {
      const names = [...kept.keys()].filter((name) => name.startsWith(prefix)).sort()
      return names.slice(0, limit).map((name) => ({ name, value: kept.get(name) ?? '' }))
    },
  }
}
