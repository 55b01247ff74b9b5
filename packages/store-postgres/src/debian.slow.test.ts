/** The store on Debian's PostgreSQL, where it is installed, and behind Debian's pgbouncer. */
import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { debianProgram } from '@sluice/qa/debian-program'
import type { Clock, Store } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { storeConformance } from '@sluice/testkit/store'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, disconnect } from './connection/connection.ts'
import { openPostgresStore } from './open-store.ts'
import { freePort } from './testing/free-port.ts'
import { startPostgres, type TestServer } from './testing/postgres-server.ts'

const INSTALLED = '/usr/lib/postgresql'
const versions = existsSync(INSTALLED) ? readdirSync(INSTALLED).filter((name) => existsSync(join(INSTALLED, name, 'bin/initdb'))) : []
const [version] = versions.toSorted((a, b) => Number(a) - Number(b))
if (version === undefined) console.warn(`skipped: Debian's PostgreSQL is not installed in ${INSTALLED}`)

describe.skipIf(version === undefined)(`Debian's PostgreSQL ${version ?? ''}`, () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startPostgres({ inMemory: true, programs: join(INSTALLED, version ?? '') })
  })
  afterAll(() => server.stop())

  test('statements are not compiled to machine code, which takes seconds', async () => {
    const client = await connect({ url: server.url }, { pipeline: true })
    const { rows } = await client.query('EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM pg_class')
    await disconnect(client)
    expect(rows[0]['QUERY PLAN'][0]).toMatchObject({ Plan: expect.anything() })
    expect(rows[0]['QUERY PLAN'][0]).not.toHaveProperty('JIT')
  })

  const schemas = new WeakMap<Store, string>()
  let opened = 0
  async function open(schema: string, clock: Clock): Promise<Store> {
    const store = await openPostgresStore({ url: server.url, schema, node: 'node', readers: 1, writers: 2, clock, log: testHost().log })
    schemas.set(store, schema)
    return store
  }

  storeConformance({
    name: `PostgreSQL ${version ?? ''}`,
    open: (clock) => open(`store_${opened++}`, clock),
    reopen: (store, clock) => open(schemas.get(store) ?? '', clock),
    except: [
      {
        rule: 'nothing of an erased conversation remains in the files',
        why: 'PostgreSQL overwrites a deleted row after its vacuum, and recycles its write-ahead log later',
      },
    ],
    async settle(stores) {
      for (let round = 0; round < 4; round++) {
        for (const store of stores) await Promise.resolve(store.devices.version()).catch(() => undefined)
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  })
})

test('a pooler in transaction mode is refused, and one in session mode works', { timeout: 120_000 }, async (context) => {
  const found = await debianProgram({ packages: ['pgbouncer'], program: 'usr/sbin/pgbouncer' })
  if ('missing' in found) return context.skip(found.missing)
  const server = await startPostgres({ inMemory: true })
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pgbouncer-'))
  const poolers: ChildProcess[] = []
  const start = async (mode: string): Promise<string> => {
    const port = await freePort()
    const file = join(folder, `${mode}.ini`)
    const database = `[databases]\npostgres = host=127.0.0.1 port=${server.port} user=postgres\n`
    const pool = `[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nauth_type = any\npool_mode = ${mode}\nunix_socket_dir =\n`
    writeFileSync(file, `${database}${pool}`)
    const root = process.getuid?.() === 0
    if (root) for (const path of [folder, file]) chownSync(path, 65_534, 65_534)
    const pooler = spawn(found.path, [file], {
      env: { ...process.env, ...found.env },
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(root && { uid: 65_534, gid: 65_534 }),
    })
    poolers.push(pooler)
    let text = ''
    for await (const data of pooler.stderr ?? []) {
      text += String(data)
      if (text.includes('process up') || text.includes('listening on')) break
    }
    return `postgres://postgres@127.0.0.1:${port}/postgres`
  }
  try {
    await expect(openPostgresStore({ url: await start('transaction'), node: 'node', writers: 1, readers: 1 })).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('transaction mode'),
    })
    const store = await openPostgresStore({ url: await start('session'), node: 'node', writers: 1, readers: 1 })
    await store.keyValue('pooled').set('key', 1)
    expect(await store.keyValue('pooled').get('key')).toBe(1)
    await store.close()
  } finally {
    for (const pooler of poolers) pooler.kill('SIGKILL')
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})
