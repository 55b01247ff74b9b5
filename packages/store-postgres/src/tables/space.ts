/** Estimates how much the data takes, from the statistics that the server keeps for its planner. */
import type { StoreUsage } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'

/** Bytes of a row besides its columns, with its index entries. */
const ROW_EXTRA_BYTES = 120
// Files of tables keep the space of deleted rows for new ones, so that their sizes do not tell how much is in use.
const USED = `
  SELECT coalesce(sum(greatest(reltuples, 0) * (width.bytes + ${ROW_EXTRA_BYTES})), 0)::float8 AS bytes
  FROM pg_class JOIN (
    SELECT tablename, sum(avg_width * (1 - null_frac)) AS bytes FROM pg_stats WHERE schemaname = current_schema() GROUP BY tablename
  ) AS width ON width.tablename = relname
  WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> 'sop_audit'`
const FILES = `
  SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::float8 AS bytes FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`
const UPGRADED = "SELECT value FROM meta WHERE key = 'upgraded_at'"

/** Returns the bytes in use without the audit log. */
export const usedBytes = async (db: Database): Promise<number> => (await db.get<{ bytes: number }>(USED))?.bytes ?? 0

/** Returns the sizes for `doctor`. */
export async function usageOf(db: Database): Promise<StoreUsage> {
  const [bytes, files, upgraded] = await Promise.all([usedBytes(db), db.get<{ bytes: number }>(FILES), db.get<{ value: string }>(UPGRADED)])
  return { bytes, fileBytes: files?.bytes ?? 0, upgradedAtMs: upgraded ? Number(upgraded.value) : null, copies: [] }
}
