/** A database that went back: an old primary that accepts writes again after a failover, and data that was recovered to an earlier time. */
import type { DatabaseRecord, Logger, SeenDatabase, ServerCheck, Store } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { markRecovered } from '../maintenance/mark-recovered.ts'
import { openPostgresStore } from '../open-store.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'
import { connect, disconnect, queryOf } from './connection.ts'
import { ServerHistory } from './server-history.ts'

const NOW_MS = Date.parse('2026-03-01T00:00:00Z')
const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const end of undo.splice(0).reverse()) await end()
})

async function started(): Promise<TestServer> {
  const server = await startPostgres({ inMemory: true })
  undo.push(() => server.stop())
  return server
}

/** A record in memory. */
function recordOf(): DatabaseRecord & { seen: SeenDatabase | undefined } {
  return {
    seen: undefined,
    read() {
      return this.seen
    },
    write(_, seen) {
      this.seen = seen
    },
  }
}

const openAt = (url: string, record?: DatabaseRecord, log: Logger = testHost().log): Promise<Store> =>
  openPostgresStore({ url, node: 'node', readers: 1, writers: 1, connectMs: 2000, log, ...(record && { record }) })

const byName = (checks: readonly ServerCheck[] = []): Record<string, ServerCheck> =>
  Object.fromEntries(checks.map((one) => [one.check, one]))

const addressOf = ({ port }: { readonly port: number }): string => `127.0.0.1:${port}`
const urlOf = (...servers: readonly { readonly port: number }[]): string =>
  `postgres://postgres@${servers.map(addressOf).join(',')}/postgres`

const takesWrites = (store: Store): Promise<boolean> =>
  store
    .keyValue('test')
    .set('second', 2)
    .then(() => true)
    .catch(() => false)

async function run(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  client.on('error', () => undefined)
  await client.connect()
  await client.query(text)
  await client.end()
}

test('after a failover, an old primary that starts again gets nothing to store, and the others go on', { timeout: 120_000 }, async () => {
  const old = await started()
  const standby = await old.addStandby()
  const url = urlOf(old, standby)
  const record = recordOf()
  const lines: string[] = []
  const store = await openAt(url, record, { ...testHost().log, error: (line) => void lines.push(line) })
  await store.keyValue('test').set('first', 1)
  await old.kill()
  await standby.promote()
  await expect.poll(() => takesWrites(store), { timeout: 20_000 }).toBe(true)

  // The machine of the old primary has booted again, and the connections of the daemon break.
  await old.start()
  await run(
    standby.url,
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sluice' AND pid <> pg_backend_pid()",
  )
  expect(await takesWrites(store)).toBe(true)
  await expect
    .poll(() => lines)
    .toContain(`${addressOf(old)} accepts writes but is an old primary: stop it, or make it a standby of ${addressOf(standby)}`)
  expect(byName(await store.checkServer?.())['database primary']).toMatchObject({ status: 'fail' })
  await store.close()

  // A daemon that has seen neither server cannot tell which one is right.
  await expect(openAt(url)).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining(`${addressOf(old)} and ${addressOf(standby)} of store.url both accept writes`),
  })

  // Only the old primary can be reached.
  await standby.kill()
  await expect(openAt(url, record)).rejects.toThrow(
    `The database went back: ${addressOf(old)} is on timeline 1, but this daemon has worked on timeline 2.`,
  )
})

test('a server that two names of the address lead to is one server', { timeout: 60_000 }, async () => {
  const server = await started()
  const store = await openAt(`postgres://postgres@127.0.0.1:${server.port},localhost:${server.port}/postgres`)
  await store.keyValue('test').set('a', 1)
  await store.close()
})

test('an earlier state of the data is refused until it is marked as recovered', { timeout: 60_000 }, async () => {
  const server = await started()
  const record = recordOf()
  const first = await openAt(server.url, record)
  await first.keyValue('test').set('a', 1)
  await first.close()
  // As after a recovery, the last commits are missing.
  await run(server.url, 'UPDATE sluice.connections SET writes = writes - 1 WHERE writes > 0')
  await expect(openAt(server.url, record)).rejects.toThrow(/^The database went back: .* commits of Sluice, but this daemon has seen/)
  const settings = { url: server.url }
  await markRecovered({ settings, atMs: NOW_MS - 1000, nowMs: NOW_MS, about: { keyIds: [], log: testHost().log } })
  const second = await openAt(server.url, record)
  await second.keyValue('test').set('a', 2)
  await second.close()
})

test('a running daemon notices that its last commits are missing', { timeout: 60_000 }, async () => {
  const server = await started()
  const store = await openAt(server.url, recordOf())
  await store.keyValue('test').set('a', 1)
  await run(
    server.url,
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sluice' AND pid <> pg_backend_pid(); UPDATE sluice.connections SET writes = 0",
  )
  await expect(store.keyValue('test').set('a', 2)).rejects.toThrow(/^The database went back: .* commits/)
  await expect(store.keyValue('test').get('a')).rejects.toThrow(/^The database went back/)
  await store.close()
})

test('a database whose tables are gone is refused', { timeout: 60_000 }, async () => {
  const server = await started()
  const record = recordOf()
  const store = await openAt(server.url, record)
  await store.keyValue('test').set('a', 1)
  await store.close()
  await run(server.url, 'DROP SCHEMA sluice CASCADE')
  await expect(openAt(server.url, record)).rejects.toThrow(/^The database went back: .* has 0 commits of Sluice/)
})

test('a lease that was asked for but never granted does not make the standby look old', { timeout: 120_000 }, async () => {
  const old = await started()
  const standby = await old.addStandby()
  const url = urlOf(old, standby)
  const record = recordOf()
  const store = await openAt(url, record)
  await store.keyValue('test').set('first', 1)
  // The primary is cut off from its standby: its commits wait from now on.
  await standby.kill()
  const waiting = new pg.Client(old.url)
  waiting.on('error', () => undefined)
  await waiting.connect()
  undo.push(() => waiting.end().catch(() => undefined))
  const taken = waiting.query(
    "INSERT INTO sluice.leases (name, epoch, process) SELECT 'probe/' || i, nextval('sluice.epochs'), 'probe' FROM generate_series(1, 64) i",
  )
  taken.catch(() => undefined)
  const hasTaken = async (): Promise<boolean> => {
    const client = new pg.Client(old.url)
    await client.connect()
    const { rows } = await client.query('SELECT last_value FROM sluice.epochs')
    await client.end()
    return Number(rows[0]?.last_value) >= 64
  }
  await expect.poll(hasTaken, { timeout: 20_000 }).toBe(true)
  const other = new ServerHistory(record, 'other', testHost().log)
  const client = await connect({ url, history: other, connectMs: 2000 })
  await other.look(queryOf(client))
  await disconnect(client)

  await old.kill()
  await standby.start()
  await standby.promote()
  await expect.poll(() => takesWrites(store), { timeout: 30_000 }).toBe(true)
  await store.close()
  await disconnect(await connect({ url, history: other, connectMs: 2000 }))
})
