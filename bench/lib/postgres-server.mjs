// A PostgreSQL of its own for a measurement, on the disk that is measured, and what it spends: processor time and write-ahead log.
import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import { startPostgres } from '../../packages/store-postgres/src/testing/postgres-server.ts'

const TICK_US = 10_000

/** As operators run it: everything is synced, and checkpoints are so rare that full-page images count only where they are asked for. */
const SETTINGS = ['shared_buffers=256MB', 'max_wal_size=8GB', 'checkpoint_timeout=1h', 'autovacuum_naptime=5min']

export async function startServer({ pageImages = false } = {}) {
  const server = await startPostgres({ settings: SETTINGS })
  const client = new pg.Client(server.url)
  client.on('error', () => undefined)
  await client.connect()
  const one = async (text, values) => (await client.query(text, values)).rows[0]
  return {
    url: server.url,
    query: (text, values) => client.query(text, values).then(({ rows }) => rows),
    /** Begins a span of measurement. Without page images, the pages of earlier rows have had theirs. */
    async begin() {
      if (pageImages) await client.query('CHECKPOINT')
      const { lsn } = await one('SELECT pg_current_wal_insert_lsn() AS lsn')
      return { lsn, cpuUs: cpuUsOf(server.pid()) }
    },
    async end({ lsn, cpuUs }) {
      const cpu = cpuUsOf(server.pid()) - cpuUs
      const { bytes, now } = await one(
        'SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1) AS bytes, pg_current_wal_insert_lsn() AS now',
        [lsn],
      )
      return { walBytes: Number(bytes), cpuUs: cpu, from: lsn, to: now }
    },
    async stop() {
      await client.end().catch(() => undefined)
      await server.stop()
    },
  }
}

/** The processor time of the server and all its backends, ended ones included. */
function cpuUsOf(pid) {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'latin1').split(') ')[1].split(' ')
      if (Number(name) === pid) ticks += Number(fields[11]) + Number(fields[12]) + Number(fields[13]) + Number(fields[14])
      else if (Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // It has ended meanwhile.
    }
  }
  return ticks * TICK_US
}
