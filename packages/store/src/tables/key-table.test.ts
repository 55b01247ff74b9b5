import { expect, test } from 'vitest'
import { type KeyLimits, KeyTable, type KnownKeys } from './key-table.ts'

const LIMITS: KeyLimits = { ttlMs: 10, keysMax: 3 }

test('of two ended turns with one key, the newer one counts after a restart', () => {
  const done = [
    { key: 'a', turnId: 'older', endedAtMs: 1 },
    { key: 'a', turnId: 'newer', endedAtMs: 5 },
  ]
  const table = new KeyTable(() => ({ queued: [], done }))
  expect(table.claim('a', LIMITS, 12)).toBe('done')
  expect(table.turnOf('a')).toBe('newer')
})

test('a claim in flight outlasts a read of stored keys that has an earlier turn of the same key', () => {
  let stored: KnownKeys = { queued: [], done: [] }
  const table = new KeyTable(() => stored)
  expect(table.claim('a', LIMITS, 2)).toBe('claimed')
  // The turn that used the key before was dropped from the table for lack of room, and is still stored.
  stored = { queued: [], done: [{ key: 'a', turnId: 'before', endedAtMs: 1 }] }
  table.refresh()
  expect(table.claim('a', LIMITS, 3)).toBe('in_flight')
})
