/** What doctor says about a server with a standby, old transactions and another clock, and connections with TLS. */
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServerCheck, Store } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { openPostgresStore } from '../open-store.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'
import { checkServer } from './check-server.ts'
import { createDatabase, type Database } from './database.ts'
import { Reader } from './reader.ts'

const NOBODY = 65_534
const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const end of undo.splice(0).reverse()) await end()
})

async function started(options: Parameters<typeof startPostgres>[0]): Promise<TestServer> {
  const server = await startPostgres(options)
  undo.push(() => server.stop())
  return server
}

async function opened(url: string, more: object = {}): Promise<Store> {
  const store = await openPostgresStore({ url, node: 'node', readers: 1, writers: 1, ...more })
  undo.push(() => store.close())
  return store
}

const byName = (checks: readonly ServerCheck[] = []): Record<string, ServerCheck> =>
  Object.fromEntries(checks.map((one) => [one.check, one]))

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => undefined)
  await client.connect()
  undo.push(() => client.end().catch(() => undefined))
  return client
}

/** Starts a standby from a base backup of the server. */
async function startStandby(server: TestServer, client: pg.Client): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-standby-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  const data = join(folder, 'data')
  await client.query("SELECT pg_backup_start('standby', true)")
  cpSync(join(server.folder, 'data'), data, { recursive: true })
  const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)')
  writeFileSync(join(data, 'backup_label'), rows[0].labelfile)
  writeFileSync(join(data, 'standby.signal'), '')
  rmSync(join(data, 'postmaster.pid'), { force: true })
  chmodSync(data, 0o700)
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, folder])
  return started({ data, settings: [`primary_conninfo=host=127.0.0.1 port=${server.port} user=postgres application_name=second`] })
}

test('doctor shows the version, the clock and the time of a commit, and warns about an asynchronous standby', {
  timeout: 120_000,
}, async () => {
  const server = await started({ settings: ['wal_keep_size=64MB'] })
  const store = await opened(server.url)
  const alone = byName(await store.checkServer?.())
  expect(Object.values(alone).map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok', 'ok'])
  expect(alone['database version']?.detail).toMatch(/^PostgreSQL 1[5-9]/)
  expect(alone['database commit']?.detail).toMatch(/^a commit takes [\d.]+ ms$/)

  const client = await connected(server.url)
  await startStandby(server, client)
  const state = async () => byName(await store.checkServer?.())['database standby']
  await expect
    .poll(state, { timeout: 20_000 })
    .toMatchObject({ status: 'warn', detail: expect.stringContaining('asynchronous only (second)') })
  await client.query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
  await client.query('SELECT pg_reload_conf()')
  await expect.poll(state, { timeout: 20_000 }).toMatchObject({ status: 'ok', detail: 'synchronous: second' })
})

test('doctor warns about old transactions and another clock', { timeout: 60_000 }, async () => {
  const server = await started({ inMemory: true })
  const clock = testClock()
  const store = await opened(server.url, { clock })
  const other = await connected(server.url)
  await other.query("SET application_name = 'report'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
  expect(byName(await store.checkServer?.())['database clock']).toMatchObject({
    status: 'warn',
    detail: expect.stringMatching(/ahead of|behind/),
  })
  const reader = new Reader({ url: server.url }, 1)
  undo.push(() => reader.close())
  const db = createDatabase({ reader, clock } as unknown as Database)
  expect(byName(await checkServer(db, { snapshotSecsMax: 0 }))['database snapshots']).toMatchObject({
    status: 'warn',
    detail: expect.stringContaining("'report'"),
  })
})

/** Makes an authority and a certificate of it for these names. */
function certificates(folder: string, name: string, hosts: string): void {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  openssl(
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    '-subj',
    `/CN=${name} authority`,
    '-keyout',
    `${name}-ca.key`,
    '-out',
    `${name}-ca.pem`,
  )
  openssl(
    'req',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    `/CN=${name}`,
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.csr`,
  )
  writeFileSync(join(folder, `${name}.ext`), `subjectAltName=${hosts}\n`)
  openssl(
    'x509',
    '-req',
    '-in',
    `${name}.csr`,
    '-CA',
    `${name}-ca.pem`,
    '-CAkey',
    `${name}-ca.key`,
    '-CAcreateserial',
    '-days',
    '2',
    '-extfile',
    `${name}.ext`,
    '-out',
    `${name}.pem`,
  )
}

test('TLS checks the authority and the host of the server', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  certificates(folder, 'right', 'DNS:localhost')
  certificates(folder, 'other', 'DNS:localhost')
  chmodSync(folder, 0o755)
  if (process.getuid?.() === 0) chownSync(join(folder, 'right.key'), NOBODY, NOBODY)
  const server = await started({
    inMemory: true,
    settings: ['ssl=on', `ssl_cert_file=${folder}/right.pem`, `ssl_key_file=${folder}/right.key`],
  })
  const byHost = server.url.replace('127.0.0.1', 'localhost')
  const verify = (url: string, ca: string) => openPostgresStore({ url, node: 'node', tls: 'verify', caFile: join(folder, `${ca}-ca.pem`) })
  const store = await verify(byHost, 'right')
  undo.push(() => store.close())
  const client = await connected(server.url)
  const { rows } = await client.query(
    "SELECT bool_and(ssl) AS ssl, count(*)::int AS count FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'sluice'",
  )
  expect(rows[0]).toMatchObject({ ssl: true })
  expect(rows[0].count).toBeGreaterThan(0)
  await expect(verify(byHost, 'other')).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/certificate|issuer|verify/i),
  })
  await expect(verify(server.url, 'right')).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/altnames|does not match|IP/i),
  })
  await expect(openPostgresStore({ url: byHost, node: 'node', tls: 'verify' })).rejects.toMatchObject({ code: 'unavailable' })
})
