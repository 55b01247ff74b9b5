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

test('costs are kept by model, also of turns that a process of the release before drops', async () => {
  const step = MIGRATIONS.findIndex(({ sql }) => sql.includes('CREATE TABLE dropped_costs'))
  const settings = { url: server.url, schema: 'costs' }
  const start = (migrations: readonly Migration[]) => migrate({ settings, log: testHost().log, nowMs: 0, keyIds: [], migrations })
  await start(MIGRATIONS.slice(0, step))
  await client.query("SET search_path = costs; INSERT INTO costs (quarter, agent, usd) VALUES (1, 'main', 0.75)")
  await start(MIGRATIONS)
  await client.query(`
    INSERT INTO turns (id, shard, agent, source, status, model, input_tokens, output_tokens, cost_usd, created_at, ended_at) VALUES
      ('a', 0, 'main', 'test', 'done', 'm', 10, 1, 0.25, 0, 900000), ('b', 0, 'main', 'test', 'done', 'm', 20, 2, 0.5, 0, 900001),
      ('c', 0, 'main', 'test', 'failed', NULL, 0, 0, 1, 0, 900002), ('d', 0, 'main', 'test', 'queued', NULL, 0, 0, 0, 0, NULL)`)
  for (const ids of [['a'], ['b', 'c', 'd']]) await client.query('DELETE FROM turns WHERE id = ANY ($1)', [ids])
  const { rows } = await client.query('SELECT model, usd, turns::int, input_tokens, output_tokens FROM dropped_costs ORDER BY model')
  expect(rows).toEqual([
    { model: '', usd: 1.75, turns: 1, input_tokens: 0, output_tokens: 0 },
    { model: 'm', usd: 0.75, turns: 2, input_tokens: 30, output_tokens: 3 },
  ])
})
