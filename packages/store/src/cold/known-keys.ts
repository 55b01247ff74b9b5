/** The idempotency keys that the stored turns and procedure events have. */
import type { KeyLimits, KnownKeys } from '../tables/key-table.ts'
import { type Steps, statement } from './cold-database.ts'

const QUEUED = `
  SELECT idempotency AS key, id AS "turnId" FROM turns
  WHERE ended_at IS NULL AND inbox IS NULL AND idempotency IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT $1`
const DONE_BY_TURN = `
  SELECT idempotency AS key, id AS "turnId", ended_at AS "endedAtMs" FROM turns
  WHERE idempotency IS NOT NULL AND status = 'done' AND ended_at > $2 ORDER BY ended_at DESC, id DESC LIMIT $1`
const DONE_BY_EVENT = `
  SELECT idempotency AS key, NULL AS "turnId", at AS "endedAtMs" FROM sop_events
  WHERE idempotency IS NOT NULL AND at > $2 ORDER BY at DESC, idempotency DESC LIMIT $1`

/** Reads at most `keysMax` rows of each kind. */
export function* knownKeys({ ttlMs, keysMax }: KeyLimits, nowMs: number): Steps<KnownKeys> {
  const done = [DONE_BY_TURN, DONE_BY_EVENT].map((text) => statement(text, keysMax, nowMs - ttlMs))
  const [queued = [], ...ended] = yield [statement(QUEUED, keysMax), ...done]
  return {
    queued: (queued as KnownKeys['queued']).toReversed(),
    done: ended.flatMap((rows) => (rows as KnownKeys['done']).toReversed()).sort((a, b) => a.endedAtMs - b.endedAtMs),
  }
}
