/** Deletes data beyond its retention and returns the space to the file system. */
import type { DeletedRows, Retention } from '@sluice/sdk'
import { NEEDING, type PruneDialect, type Pruned, prunable as prunableOf, prune as pruneTables } from '../cold/prune.ts'
import { dropOldCopies } from '../connection/copy-before-upgrade.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { createColdDatabase } from '../connection/run-steps.ts'
import { DIALECT } from './dialect.ts'
import { shrink, usedBytes } from './space.ts'

// The conditions on the content equal the conditions of the partial indexes.
const HAS_CONTENT = 'message_json IS NOT NULL OR raw IS NOT NULL'
const dropContent = (state: string, content: string, set: string): string => `
  UPDATE inbox SET ${set} WHERE number IN (
    SELECT number FROM inbox AS first WHERE state = '${state}' AND (${content}) AND NOT EXISTS (${NEEDING}) ORDER BY number LIMIT $1)
  RETURNING 0 AS bytes`
const CUT_SLICE_ROWS = 50

const pruneDialect = (db: Database): PruneDialect => ({
  dropMessages: (numbers) => `DELETE FROM inbox WHERE number IN (${numbers}) RETURNING number`,
  // A trigger keeps what they cost.
  dropTurns: (ids) => `DELETE FROM turns WHERE id IN (${ids}) RETURNING 0 AS bytes`,
  dropSessions: (numbers) => `DELETE FROM sessions WHERE number IN (${numbers}) RETURNING number`,
  dropContent: dropContent('done', HAS_CONTENT, 'message_json = NULL, raw = NULL'),
  dropLimitedContent: dropContent('limited', `${HAS_CONTENT} OR batch IS NOT NULL`, 'message_json = NULL, raw = NULL, batch = NULL'),
  dropCosts: ['DELETE FROM costs_by_model WHERE quarter < $1'],
  unindexedState: '+state',
  space: { sliceRows: CUT_SLICE_ROWS, usedBytes: () => usedBytes(db), freed: () => undefined },
})

/** Blocks the event loop for at most a few milliseconds at a time, however much there is to delete. */
export async function prune(db: Database, writer: Writer, file: string, retention: Retention): Promise<Pruned> {
  const pruned = await pruneTables(createColdDatabase(db, writer, DIALECT), pruneDialect(db), retention)
  await shrink(db, writer)
  dropOldCopies(file, retention.nowMs)
  return pruned
}

/** Resolves to the number of rows that are old enough to be dropped. */
export const prunable = (db: Database, writer: Writer, retention: Retention): Promise<DeletedRows> =>
  prunableOf(createColdDatabase(db, writer, DIALECT), retention)
