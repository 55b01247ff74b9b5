/** The idempotency port on top of the key table and the turns on disk. */
import type { Clock, IdempotencyStore } from '@sluice/sdk'
import type { Database } from './database.ts'
import { hashKey, KeyTable } from './key-table.ts'

const QUEUED = `
  SELECT idempotency AS key FROM turns
  WHERE ended_at IS NULL AND inbox IS NULL AND idempotency IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT ?`
const DONE = `
  SELECT idempotency AS key, ended_at AS endedAtMs FROM turns
  WHERE idempotency IS NOT NULL AND status = 'done' AND ended_at > ? ORDER BY ended_at DESC, id DESC LIMIT ?`

/** `claim` and `release` are synchronous; only the first claim reads from disk, at most `keysMax` rows of each kind. */
export function createIdempotency(db: Database, clock: Clock): { readonly keys: KeyTable; readonly port: IdempotencyStore } {
  const keys = new KeyTable(({ ttlMs, keysMax }) =>
    db.read(() => ({
      queued: db
        .all<{ key: string }>(QUEUED, keysMax)
        .map(({ key }) => key)
        .reverse(),
      done: db.all<{ key: string; endedAtMs: number }>(DONE, clock.nowMs() - ttlMs, keysMax).reverse(),
    })),
  )
  return {
    keys,
    port: {
      claim: (key, limits) => keys.claim(hashKey(key), limits, clock.nowMs()),
      release: (key) => keys.release(hashKey(key)),
    },
  }
}
