/** The approvals that a process owns. */
import type { OwnedApprovalStore, ShardRange } from '@sluice/sdk'
import { APPROVAL_COLUMNS, type ApprovalColumns, numberOf, withPrompts } from '@sluice/store/shared'
import type { Row } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { runSteps } from '../connection/run-steps.ts'
import { shardQuery } from '../connection/shard-reads.ts'
import { DIALECT } from './dialect.ts'

const UNFINISHED = shardQuery(
  (shard) => `
  SELECT ${APPROVAL_COLUMNS}, shard FROM approvals
  WHERE settled_at IS NULL AND (NOT $5 OR state <> 'pending') AND ${shard} AND number > $3 ORDER BY number LIMIT $4`,
)

export function ownedApprovals(db: Database, shards: ShardRange | null): Pick<OwnedApprovalStore, 'unfinished'> {
  return {
    async unfinished({ after, limit, decided = false }) {
      const start = after ? await runSteps(db, numberOf(after)) : 0
      if (start === undefined || !shards) return []
      const rows = await db.shards.all<ApprovalColumns & Row>(UNFINISHED, shards, limit, start, limit, decided)
      return runSteps(db, withPrompts(DIALECT, rows))
    },
  }
}
