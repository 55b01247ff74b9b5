/** Keeps commands that change the data as a whole away from running daemons. */
import { AppError } from '@sluice/sdk'
import { TTL_MS } from '../cluster/membership.ts'
import type { Tx } from '../connection/group-commit.ts'
import { sqlState } from '../connection/postgres-error.ts'

const POLL_MS = 250
const UNDEFINED_TABLE = '42P01'
const ALIVE = `SELECT node FROM processes WHERE beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond' LIMIT 1`

/**
 * Rejects with `not_found` where nothing of Sluice is, and with `conflict` while a daemon counts as alive. Waits for `waitMs` first: data that was recovered to the last seconds has the
 * signs of life of a daemon that has ended.
 */
export async function requireNoDaemon(tx: Pick<Tx, 'get'>, waitMs = 0): Promise<void> {
  const endMs = performance.now() + waitMs
  let alive = await aliveNode(tx)
  while (alive && performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    alive = await aliveNode(tx)
  }
  if (alive) throw new AppError('conflict', `A daemon works with the database (${alive.node}). Stop every daemon first.`)
}

async function aliveNode(tx: Pick<Tx, 'get'>): Promise<{ readonly node: string } | undefined> {
  try {
    return await tx.get(ALIVE)
  } catch (error) {
    if (sqlState(error) !== UNDEFINED_TABLE) throw error
    throw new AppError('not_found', 'The database has no tables of Sluice in this schema: see [store] url and schema.', { cause: error })
  }
}
