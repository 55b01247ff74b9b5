/** The idempotency port, on top of the key table of this process and of the stored turns and procedure events. */
import { BoundedMap } from '@sluice/kit'
import type { Claim, IdempotencyStore } from '@sluice/sdk'
import { hashKey, type KeyLimits, KeyTable, type KnownKeys, knownKeys } from '@sluice/store/shared'
import type { Database } from '../connection/database.ts'
import type { ForeignCommits } from '../connection/foreign-commits.ts'
import { runSteps } from '../connection/run-steps.ts'

const QUEUED_OF = 'SELECT id FROM turns WHERE idempotency = $1 AND ended_at IS NULL AND inbox IS NULL LIMIT 1'
const DONE_OF = `
  SELECT $1 AS key, id AS "turnId", ended_at AS "endedAtMs" FROM turns WHERE idempotency = $1 AND status = 'done' AND ended_at > $2
  UNION ALL SELECT $1, NULL, at FROM sop_events WHERE idempotency = $1 AND at > $2
  ORDER BY "endedAtMs" DESC LIMIT 1`

/**
 * Only the first claim reads all stored keys, at most `keysMax` rows of each kind. Once another process has written, each claim reads its
 * own key. Of two processes that claim a key at once, the commit that stores the turn decides.
 */
export function createIdempotency(
  db: Database,
  foreign: ForeignCommits,
): { readonly keys: WatchedKeyTable; readonly port: IdempotencyStore } {
  let loaded: KnownKeys = { queued: [], done: [] }
  const keys = new WatchedKeyTable(() => loaded)
  let version: number | undefined

  /** Resolves to the number of foreign commits before the keys were read. */
  async function load(limits: KeyLimits): Promise<number> {
    for (;;) {
      const latest = await foreign.read()
      const { changes } = keys
      const known = await runSteps(db, knownKeys(limits, db.clock.nowMs()))
      // Keys that this process stored meanwhile may be missing in the rows.
      if (keys.changes !== changes) continue
      loaded = known
      keys.refresh()
      return latest
    }
  }

  async function lookUp(key: string, { ttlMs }: KeyLimits): Promise<void> {
    for (;;) {
      using watch = keys.watch(key)
      const [queued, ended] = await Promise.all([
        db.get<{ id: string }>(QUEUED_OF, key),
        db.get<KnownKeys['done'][number]>(DONE_OF, key, db.clock.nowMs() - ttlMs),
      ])
      if (watch.hasChanged) continue
      keys.learn(key, { queued: queued?.id, ended })
      return
    }
  }

  return {
    keys,
    port: {
      async claim(given, limits) {
        const key = hashKey(given)
        if (version === undefined) version = await load(limits)
        else if ((await foreign.read()) !== version) await lookUp(key, limits)
        return keys.claim(key, limits, db.clock.nowMs())
      },
      turnOf: (key) => keys.turnOf(hashKey(key)),
      release: (key) => keys.release(hashKey(key)),
    },
  }
}

interface Watch extends Disposable {
  readonly hasChanged: boolean
}

/** Claims that wait until their turns are stored. */
const CLAIMS_MAX = 10_000

/** Notices the turns of this process that are stored or end while keys are read. */
export class WatchedKeyTable extends KeyTable {
  changes = 0
  readonly #since = new BoundedMap<string, number>(CLAIMS_MAX)
  readonly #watched = new Set<{ readonly key: string; hasChanged: boolean }>()

  watch(key: string): Watch {
    const watch = { key, hasChanged: false, [Symbol.dispose]: () => void this.#watched.delete(watch) }
    this.#watched.add(watch)
    return watch
  }

  override claim(key: string, limits: KeyLimits, nowMs: number): Claim {
    const claim = super.claim(key, limits, nowMs)
    if (claim === 'claimed') this.#since.set(key, nowMs - limits.ttlMs)
    return claim
  }

  override release(key: string): void {
    this.#since.delete(key)
    super.release(key)
  }

  /** Returns the time after which no turn with the key may have ended when this process claimed it, and forgets it. */
  takeClaimedSince(key: string): number | undefined {
    const sinceMs = this.#since.get(key)
    this.#since.delete(key)
    return sinceMs
  }

  override queued(key: string, turnId: string): void {
    this.#changed(key)
    super.queued(key, turnId)
  }

  override ended(key: string, turnId: string | null, doneAtMs: number | undefined): void {
    this.#changed(key)
    super.ended(key, turnId, doneAtMs)
  }

  #changed(key: string): void {
    this.changes++
    for (const watch of this.#watched) if (watch.key === key) watch.hasChanged = true
  }
}
