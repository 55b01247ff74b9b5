/** Keeps commands that change the data as a whole away from running daemons. */
import { AppError } from '@sluice/sdk'
import { TTL_MS } from './leases.ts'
import type { Tx } from './writer.ts'

const ALIVE = `SELECT node FROM processes WHERE beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond' LIMIT 1`

/** Rejects with `conflict` while a daemon counts as alive. */
export async function requireNoDaemon(tx: Pick<Tx, 'get'>): Promise<void> {
  const alive = await tx.get<{ node: string }>(ALIVE)
  if (alive) throw new AppError('conflict', `A daemon works with the database (${alive.node}). Stop every daemon first.`)
}
