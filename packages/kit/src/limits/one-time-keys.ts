/** One-time keys: shared by all nodes in a cluster, else in the memory of this process. */
import type { Clock, Host, OneTimeKeys, OneTimeKeysOf } from '@sluice/sdk'
import { BoundedMap } from './bounded-map.ts'

interface Kept<Value> {
  readonly value: Value
  readonly expiresAtMs: number
}

const memoryOneTimeKeys =
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

/** Returns the keys of a purpose. A feature may call it while it is built: the service is looked up at the first use. */
export function oneTimeKeys<Value>(
  host: Pick<Host, 'clock' | 'service'>,
  purpose: string,
  options: Parameters<OneTimeKeysOf>[1],
): OneTimeKeys<Value> {
  let opened: OneTimeKeys<Value> | undefined
  const keys = (): OneTimeKeys<Value> => {
    opened ??= (host.service('oneTimeKeys') ?? memoryOneTimeKeys(host.clock))<Value>(purpose, options)
    return opened
  }
  return { add: (...key) => keys().add(...key), take: (...key) => keys().take(...key) }
}
