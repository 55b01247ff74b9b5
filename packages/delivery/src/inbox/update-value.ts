/** Changes a stored value that other processes may change at the same time. */
import type { KeyValue } from '@sluice/sdk'

const ATTEMPTS_MAX = 20

/**
 * Replaces a value by what `change` makes of it, and begins again with the new value where another process was first. `change` returns the
 * value itself to leave it. `found` is the value where the caller has read it already. Resolves to the value that is stored then. Throws after
 * 20 attempts.
 */
export async function updateValue<Value>(
  keys: KeyValue,
  key: string,
  change: (value: unknown) => Value,
  found?: { readonly value: unknown },
): Promise<Value> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const value = attempt === 0 && found ? found.value : await keys.get(key)
    const next = change(value)
    if (next === value || (await keys.swap(key, value, next))) return next
  }
  throw new Error('another process keeps changing the same value')
}
