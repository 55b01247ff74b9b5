/** Refuses a pooler in transaction mode, which gives the settings, the prepared statements and the locks of a session to another client. */
import { randomUUID } from 'node:crypto'
import { AppError } from '@sluice/sdk'
import type pg from 'pg'
import { type ConnectionSettings, connect, disconnect } from './connection.ts'

const SET = "SELECT set_config('sluice.probe', $1, false)"
const GET = "SELECT current_setting('sluice.probe', true) AS probe"

/** `client` is idle. Another client sees its setting only where both use one connection of the server in turn. */
export async function refuseTransactionPooler(client: pg.Client, settings: ConnectionSettings): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  // A pooler answers with a process id of its own.
  if ('processID' in client && client.processID === rows[0]?.pid) return
  const probe = randomUUID()
  await client.query(SET, [probe])
  let other: pg.Client | undefined
  try {
    other = await connect(settings)
    const seen = await other.query<{ probe: string | null }>(GET)
    const own = await client.query<{ probe: string | null }>(GET)
    if (seen.rows[0]?.probe !== probe && own.rows[0]?.probe === probe) return
  } finally {
    await disconnect(other)
  }
  throw new AppError(
    'config_invalid',
    'store.url leads to a connection pooler in transaction mode, which shares one session among several clients. Name the server itself, or a pool in session mode.',
  )
}
