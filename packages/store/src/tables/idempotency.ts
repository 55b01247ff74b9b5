/** The idempotency port, on top of the key table and of the stored turns and procedure events. */
import type { Clock, IdempotencyStore } from '@sluice/sdk'
import { knownKeys } from '../cold/known-keys.ts'
import type { Database } from '../connection/database.ts'
import { runSteps } from '../connection/run-steps.ts'
import { hashKey } from './hashed-keys.ts'
import { KeyTable } from './key-table.ts'

/**
 * Every method is synchronous. Only the first claim, and the first one after another process has written, reads from the disk, at most
 * `keysMax` rows of each kind.
 */
export function createIdempotency(db: Database, clock: Clock): { readonly keys: KeyTable; readonly port: IdempotencyStore } {
  const keys = new KeyTable((limits) => db.read(() => runSteps(db, knownKeys(limits, clock.nowMs()))))
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
