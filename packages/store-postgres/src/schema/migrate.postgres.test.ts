/** Releases that use one schema at the same time: the previous one goes on, and older ones are refused once what they need is gone. */
import { testHost } from '@sluice/testkit/host'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'
import { migrate } from './migrate.ts'
import { MIGRATIONS, type Migration } from './schema.ts'

let server: TestServer
let client: pg.Client
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
  client = new pg.Client({ connectionString: server.url, options: '-c search_path=releases' })
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await server.stop()
})

const VERSION = MIGRATIONS.length
const before: readonly Migration[] = MIGRATIONS
const previous: readonly Migration[] = [...MIGRATIONS, { sql: 'ALTER TABLE processes ADD COLUMN added_first text' }]
const current: readonly Migration[] = [
  ...previous,
  { sql: 'ALTER TABLE processes ADD COLUMN added_later text' },
  { sql: 'ALTER TABLE processes DROP COLUMN detail_json', contracts: VERSION + 1 },
]

test('a migration that removes something waits for older releases, and then lets the previous one start', async () => {
  const settings = { url: server.url, schema: 'releases' }
  const start = (migrations: readonly Migration[]) => migrate({ settings, log: testHost().log, nowMs: 0, keyIds: [], migrations })
  const versions = async () =>
    Object.fromEntries(
      (await client.query("SELECT key, value FROM meta WHERE key IN ('schema_version', 'min_reader')")).rows.map(Object.values),
    )
  const runs = (id: string, version: number) =>
    client.query('INSERT INTO processes (id, node, schema_version) VALUES ($1, $1, $2)', [id, version])

  await start(before)
  await runs('old', VERSION)
  await start(previous)
  await runs('previous', VERSION + 1)
  await start(current)
  expect(await versions()).toEqual({ schema_version: String(VERSION + 2), min_reader: '1' })

  await client.query("DELETE FROM processes WHERE id = 'old'")
  await start(current)
  expect(await versions()).toEqual({ schema_version: String(VERSION + 3), min_reader: String(VERSION + 1) })
  await start(previous)
  await expect(start(before)).rejects.toThrow(`this release supports up to ${VERSION}`)
})
