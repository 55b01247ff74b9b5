/** The runs of procedures that a process owns. */
import type { OwnedSopStore, ShardRange } from '@sluice/sdk'
import type { Row } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { shardQuery } from '../connection/shard-reads.ts'

const NUMBER = 'SELECT number FROM sop_runs WHERE id = $1'
const UNFINISHED = shardQuery(
  (shard) => `
  SELECT run_json AS json, shard FROM sop_runs WHERE ended_at IS NULL AND held_at IS NULL AND ${shard} AND number > $3 ORDER BY number LIMIT $4`,
)

export function ownedSops(db: Database, shards: ShardRange | null): Pick<OwnedSopStore, 'unfinished'> {
  return {
    async unfinished({ after, limit }) {
      const start = after === null ? 0 : (await db.get<{ number: number }>(NUMBER, after))?.number
      if (start === undefined || !shards) return []
      return (await db.shards.all<Row & { json: string }>(UNFINISHED, shards, limit, start, limit)).map(({ json }) => JSON.parse(json))
    },
  }
}
