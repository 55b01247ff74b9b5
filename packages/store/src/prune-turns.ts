/** Drops ended turns; what they cost stays counted. */
import type { Database } from './database.ts'

/** Every time zone's days and months begin with one of these. */
export const QUARTER_MS = 15 * 60_000
/** Longer than any budget's period. */
const COSTS_KEPT_MS = 100 * 86_400_000

const DROP = `
  DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE ended_at < ? ORDER BY ended_at LIMIT ?)
  RETURNING ended_at AS endedAtMs, cost_usd AS usd`
const ADD_COST = 'INSERT INTO costs (quarter, usd) VALUES (?, ?) ON CONFLICT DO UPDATE SET usd = usd + excluded.usd'
const DROP_COSTS = 'DELETE FROM costs WHERE quarter < ?'

interface Dropped {
  readonly endedAtMs: number
  readonly usd: number
}

/** Part of a unit; returns how many were dropped. */
export function dropTurns(db: Database, endedBeforeMs: number, limit: number): number {
  const dropped = db.all<Dropped>(DROP, endedBeforeMs, limit)
  for (const { endedAtMs, usd } of dropped) if (usd !== 0) db.run(ADD_COST, Math.floor(endedAtMs / QUARTER_MS), usd)
  return dropped.length
}

export const dropOldCosts = (db: Database, nowMs: number): number => db.run(DROP_COSTS, Math.floor((nowMs - COSTS_KEPT_MS) / QUARTER_MS))
