/** Deletes data beyond its retention. The server's vacuum makes the space free for new rows. */
import type { DeletedRows, Retention } from '@sluice/sdk'
import { NEEDING, type PruneDialect, prunable as prunableOf, prune as pruneTables, QUARTER_MS } from '@sluice/store/shared'
import { sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { createColdDatabase } from '../connection/run-steps.ts'
import { DIALECT } from './dialect.ts'
import { usedBytes } from './space.ts'

const HAS_CONTENT = 'message_json IS NOT NULL OR body.raw IS NOT NULL'
const dropContent = (state: string, content: string, set: string): string => `
  WITH old AS (
      SELECT first.number, coalesce(octet_length(message_json), 0) + coalesce(octet_length(body.raw), 0) AS bytes
      FROM inbox AS first LEFT JOIN inbox_bodies AS body ON body.number = first.number
      WHERE ${state} AND (${content}) AND NOT EXISTS (${NEEDING}) ORDER BY first.number LIMIT $1),
    bodies AS (DELETE FROM inbox_bodies WHERE number IN (SELECT number FROM old)),
    dropped AS (UPDATE inbox SET ${set} WHERE number IN (SELECT number FROM old))
  SELECT bytes FROM old`
const CUT_SLICE_ROWS = 250

const TEXTS: Omit<PruneDialect, 'space'> = {
  dropMessages: (numbers) => `
    WITH old AS (DELETE FROM inbox WHERE number IN (${numbers}) RETURNING number),
      bodies AS (DELETE FROM inbox_bodies WHERE number IN (SELECT number FROM old))
    SELECT number FROM old`,
  // A trigger keeps what they cost. Processes of the release before read it from the table costs.
  dropTurns: (ids) => `
    WITH old AS (
        DELETE FROM turns WHERE id IN (${ids})
        RETURNING agent, floor(ended_at / ${QUARTER_MS})::bigint AS quarter, cost_usd,
          coalesce(octet_length(input), 0) + coalesce(octet_length(response), 0) + coalesce(octet_length(context_json), 0) +
            coalesce(octet_length(steps_json), 0) AS bytes),
      kept AS (
        INSERT INTO costs (quarter, agent, usd)
        SELECT quarter, agent, sum(cost_usd) FROM old WHERE cost_usd <> 0 GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (quarter, agent) DO UPDATE SET usd = costs.usd + excluded.usd)
    SELECT bytes FROM old`,
  dropSessions: (numbers) => `
    WITH old AS (DELETE FROM sessions WHERE number IN (${numbers}) RETURNING number),
      said AS (DELETE FROM messages WHERE session IN (SELECT number FROM old))
    SELECT number FROM old`,
  dropContent: dropContent("state = 'done'", HAS_CONTENT, 'message_json = NULL'),
  dropLimitedContent: dropContent("marked = 'limited'", `${HAS_CONTENT} OR batch IS NOT NULL`, 'message_json = NULL, batch = NULL'),
  dropCosts: ['DELETE FROM costs WHERE quarter < $1'],
  unindexedState: 'state',
}

export async function prune(db: Database, retention: Retention): Promise<DeletedRows> {
  let used: number | undefined
  let total = 0
  const space = {
    sliceRows: CUT_SLICE_ROWS,
    async usedBytes() {
      used ??= await usedBytes(db)
      return Math.max(used - total, 1)
    },
    freed(bytes: number) {
      total += bytes
    },
  }
  const { summaries: _, ...pruned } = await pruneTables(createColdDatabase(db, DIALECT), { ...TEXTS, space }, retention)
  // The next call must not count again what this one has dropped.
  if (total > 0) await db.writer.write(sql('ANALYZE inbox, inbox_bodies, outbox, turns, messages'))
  return pruned
}

/** Resolves to the number of rows that are old enough to be dropped. */
export const prunable = (db: Database, retention: Retention): Promise<DeletedRows> => prunableOf(createColdDatabase(db, DIALECT), retention)
