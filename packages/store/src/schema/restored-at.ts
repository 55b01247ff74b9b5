/** Knows when a backup was restored. */
import type { Store } from '@sluice/sdk'

/** Where the time of the last restore is, in milliseconds since 1970. */
export const RESTORED = { owner: 'restore', key: 'at' } as const

/** Resolves to undefined if no backup was ever restored to the store. */
export async function restoredAtMs(store: Pick<Store, 'keyValue'>): Promise<number | undefined> {
  const atMs = await store.keyValue(RESTORED.owner).get(RESTORED.key)
  return typeof atMs === 'number' ? atMs : undefined
}
