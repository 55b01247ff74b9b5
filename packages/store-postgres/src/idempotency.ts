/** The idempotency port, on top of the key table of this process and of the stored turns and procedure events. */
import type { IdempotencyStore } from '@sluice/sdk'
import { hashKey, KeyTable, type KnownKeys } from '@sluice/store/shared'
import type { Db } from './db.ts'
import type { ForeignCommits } from './foreign-commits.ts'

const QUEUED = `
  SELECT idempotency AS key, id AS "turnId" FROM turns
  WHERE ended_at IS NULL AND inbox IS NULL AND idempotency IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT $1`
const DONE = `
  (SELECT idempotency AS key, id AS "turnId", ended_at AS "endedAtMs" FROM turns
    WHERE idempotency IS NOT NULL AND status = 'done' AND ended_at > $2 ORDER BY ended_at DESC, id DESC LIMIT $1)
  UNION ALL
  (SELECT idempotency, NULL, at FROM sop_events WHERE idempotency IS NOT NULL AND at > $2 ORDER BY at DESC, number DESC LIMIT $1)
  ORDER BY "endedAtMs"`

/**
 * Only the first claim, and the first one after another process has written, reads the stored keys, at most `keysMax` rows of each
 * kind. Of two processes that claim a key at once, the commit that stores the turn decides.
 */
export function createIdempotency(db: Db, foreign: ForeignCommits): { readonly keys: KeyTable; readonly port: IdempotencyStore } {
  let loaded: KnownKeys = { queued: [], done: [] }
  const keys = new CountingKeyTable(() => loaded)
  let version = -1
  return {
    keys,
    port: {
      async claim(key, limits) {
        for (;;) {
          const latest = await foreign.read()
          if (latest === version) break
          const changes = keys.changes
          const [queued, done] = await Promise.all([
            db.all<KnownKeys['queued'][number]>(QUEUED, limits.keysMax),
            db.all<KnownKeys['done'][number]>(DONE, limits.keysMax, db.clock.nowMs() - limits.ttlMs),
          ])
          // What this process stored meanwhile may be missing in what was read.
          if (keys.changes !== changes) continue
          loaded = { queued: queued.toReversed(), done }
          version = latest
          keys.refresh()
          break
        }
        return keys.claim(hashKey(key), limits, db.clock.nowMs())
      },
      turnOf: (key) => keys.turnOf(hashKey(key)),
      release: (key) => keys.release(hashKey(key)),
    },
  }
}

/** Counts the turns of this process that were stored or ended. */
class CountingKeyTable extends KeyTable {
  changes = 0

  override queued(key: string, turnId: string): void {
    this.changes++
    super.queued(key, turnId)
  }

  override ended(key: string, turnId: string | null, doneAtMs: number | undefined): void {
    this.changes++
    super.ended(key, turnId, doneAtMs)
  }
}
