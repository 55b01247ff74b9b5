/** One-time keys in memory, for a daemon that shares its store with no other. */
import type { Clock, OneTimeKeys, OneTimeKeysOf } from '@sluice/sdk'
import { BoundedMap } from './bounded-map.ts'

interface Kept<Value> {
  readonly value: Value
  readonly expiresAtMs: number
}

export const memoryOneTimeKeys =
  (clock: Pick<Clock, 'monotonicMs'>): OneTimeKeysOf =>
  <Value>(_purpose: string, { ttlMs, perOwnerMax, allMax }: Parameters<OneTimeKeysOf>[1]): OneTimeKeys<Value> => {
    const owners = new BoundedMap<string, BoundedMap<string, Kept<Value>>>(Math.ceil(allMax / perOwnerMax))
    return {
      async add(owner, key, value) {
        const own = owners.get(owner) ?? new BoundedMap<string, Kept<Value>>(perOwnerMax)
        owners.set(owner, own)
        own.set(key, { value, expiresAtMs: clock.monotonicMs() + ttlMs })
      },
      async take(owner, key) {
        const own = owners.get(owner)
        const kept = own?.get(key)
        if (!own?.delete(key) || !kept) return undefined
        if (own.size === 0) owners.delete(owner)
        return clock.monotonicMs() < kept.expiresAtMs ? kept.value : undefined
      },
    }
  }
