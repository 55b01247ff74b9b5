/** Keeps commands that change the data as a whole away from running daemons. */
import { AppError } from '@sluice/sdk'
import { TTL_MS } from './leases.ts'
import type { Tx } from './writer.ts'

const POLL_MS = 250
const ALIVE = `SELECT node FROM processes WHERE beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond' LIMIT 1`

/**
 * Rejects with `conflict` while a daemon counts as alive. Waits for `waitMs` first: data that was recovered to the last seconds has the
 * signs of life of a daemon that has ended.
 */
export async function requireNoDaemon(tx: Pick<Tx, 'get'>, waitMs = 0): Promise<void> {
  const endMs = performance.now() + waitMs
  let alive = await tx.get<{ node: string }>(ALIVE)
  while (alive && performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    alive = await tx.get<{ node: string }>(ALIVE)
  }
  if (alive) throw new AppError('conflict', `A daemon works with the database (${alive.node}). Stop every daemon first.`)
}
