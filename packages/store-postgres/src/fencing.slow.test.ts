/** A failover and the way back by hand, step by step as docs/cluster.md#fencing has them, with Debian's PostgreSQL where it is installed. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { SeenDatabase } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import pg from 'pg'
import { expect, test } from 'vitest'
import { openPostgresStore } from './open-store.ts'
import { startPostgres } from './testing/postgres-server.ts'

const INSTALLED = '/usr/lib/postgresql'
const version = existsSync(INSTALLED)
  ? readdirSync(INSTALLED).find((name) => existsSync(join(INSTALLED, name, 'bin/pg_rewind')))
  : undefined
const programs = join(INSTALLED, version ?? '')
const identity = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
const run = promisify(execFile)

async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

test('a daemon goes on over a failover, with the old primary rewound as a standby, and over the way back', {
  timeout: 120_000,
}, async (context) => {
  if (version === undefined) return context.skip(`Debian's PostgreSQL is not installed in ${INSTALLED}`)
  const old = await startPostgres({ inMemory: true, programs })
  const program = (name: string, ...args: string[]) =>
    run(join(programs, 'bin', name), args, { ...identity, cwd: old.folder, env: { PATH: process.env.PATH, LC_ALL: 'C', HOME: old.folder } })
  const data = join(old.folder, 'data')
  /** Makes what a server that has ended has in its folder a standby of the new primary. */
  async function rewind(target: string, primary: { readonly url: string; readonly port: number }): Promise<void> {
    // Without it, pg_rewind of releases before 16 reads the old timeline on the new primary, and rewinds nothing.
    await query(primary.url, 'CHECKPOINT')
    const source = `host=127.0.0.1 port=${primary.port} user=postgres dbname=postgres`
    await program('pg_rewind', '--target-pgdata', target, '--source-server', source, '--write-recovery-conf')
  }
  try {
    // In the file of the server, because pg_rewind starts the old server without options. It restarts with its standby.
    await query(old.url, 'ALTER SYSTEM SET wal_log_hints = on')
    const other = await old.addStandby()
    const seen: SeenDatabase[] = []
    const record = { read: () => seen.at(-1), write: (_: string, now: SeenDatabase) => void seen.push(now) }
    const url = `postgres://postgres@127.0.0.1:${old.port},127.0.0.1:${other.port}/postgres`
    const store = await openPostgresStore({ url, node: 'node', readers: 1, writers: 1, connectMs: 2_000, record, log: testHost().log })
    const values = store.keyValue('walk')
    async function taken(key: string): Promise<void> {
      const attempt = () =>
        values.set(key, 1).then(
          () => 'taken',
          (error: Error) => error.message,
        )
      await expect.poll(attempt, { timeout: 20_000 }).toBe('taken')
    }
    await taken('before')

    await old.kill()
    await program('pg_ctl', 'promote', '-D', join(old.folder, 'standby-1'))
    await taken('after the failover')

    await rewind(data, other)
    await old.start()
    await query(other.url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
    await query(other.url, 'SELECT pg_reload_conf()')
    const standbys = () => query(other.url, 'SELECT sync_state FROM pg_stat_replication')
    await expect.poll(standbys, { timeout: 20_000 }).toEqual([{ sync_state: 'sync' }])
    await taken('with the old primary as a standby')
    expect(await query(old.url, 'SELECT pg_is_in_recovery() AS follows')).toEqual([{ follows: true }])

    await other.kill()
    await program('pg_ctl', 'promote', '-D', data)
    await rewind(join(old.folder, 'standby-1'), old)
    await other.start()
    await taken('on the way back')
    const keys = (await values.list('', 10)).map(({ key }) => key)
    expect(keys).toEqual(['after the failover', 'before', 'on the way back', 'with the old primary as a standby'])
    await store.close()
  } finally {
    await old.stop()
  }
})
