/** The idempotency port, on top of the key table and of the stored turns and procedure events. */
import type { Clock, IdempotencyStore } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import { hashKey } from './hashed-keys.ts'
import { KeyTable, type KnownKeys } from './key-table.ts'

const QUEUED = `
  SELECT idempotency AS key, id AS turnId FROM turns
  WHERE ended_at IS NULL AND inbox IS NULL AND idempotency IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT ?`
const DONE_BY_TURN = `
  SELECT idempotency AS key, id AS turnId, ended_at AS endedAtMs FROM turns
  WHERE idempotency IS NOT NULL AND status = 'done' AND ended_at > ? ORDER BY ended_at DESC, id DESC LIMIT ?`
const DONE_BY_EVENT = `
  SELECT idempotency AS key, NULL AS turnId, at AS endedAtMs FROM sop_events
  WHERE idempotency IS NOT NULL AND at > ? ORDER BY at DESC, idempotency DESC LIMIT ?`

/**
 * Every method is synchronous. Only the first claim, and the first one after another process has written, reads from the disk, at most
 * `keysMax` rows of each kind.
 */
export function createIdempotency(db: Database, clock: Clock): { readonly keys: KeyTable; readonly port: IdempotencyStore } {
  const keys = new KeyTable(({ ttlMs, keysMax }) =>
    db.read(() => ({
      queued: db.all<KnownKeys['queued'][number]>(QUEUED, keysMax).reverse(),
      done: [DONE_BY_TURN, DONE_BY_EVENT]
        .flatMap((text) => db.all<KnownKeys['done'][number]>(text, clock.nowMs() - ttlMs, keysMax).reverse())
        .sort((a, b) => a.endedAtMs - b.endedAtMs),
    })),
  )
  let foreignVersion = -1
  return {
    keys,
    port: {
      claim(key, limits) {
        const version = db.read(() => db.foreignVersion())
        if (version !== foreignVersion) keys.refresh()
        foreignVersion = version
        return keys.claim(hashKey(key), limits, clock.nowMs())
      },
      turnOf: (key) => keys.turnOf(hashKey(key)),
      release: (key) => keys.release(hashKey(key)),
    },
  }
}
