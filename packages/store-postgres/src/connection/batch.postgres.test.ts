import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'
import { sendAtOnce } from './batch.ts'
import { connect, disconnect, endsInTime, sql } from './connection.ts'

const LIMIT_MS = 300
const TEXTS = ['', 'plain', '{"a":1,"b":[]}', 'a\\b"c', 'NULL', 'null', ' ', ',{}', 'é€😀', 'a\0b', '\u0001', null]
const BYTES = [Buffer.of(), Buffer.of(0, 255, 92, 34), null, Buffer.from('\\x00')]

let server: TestServer
beforeAll(async () => {
  server = await startPostgres()
}, 60_000)
afterAll(() => server.stop())

const open = () => connect({ url: server.url, schema: 'public' }, { pipeline: true })

test('arrays of texts and bytes arrive as they were given', async () => {
  const client = await open()
  const arrays = 'SELECT $1::text[] AS texts, $2::bytea[] AS bytes, $3::float8[] AS numbers, $4::text[] AS nothing, $5::bytea[] AS nulls'
  const unnested = 'SELECT * FROM unnest($1::text[]) WITH ORDINALITY AS given (text, place) ORDER BY place'
  for (let round = 0; round < 2; round++) {
    const { rows, error } = await sendAtOnce(client, [sql(arrays, TEXTS, BYTES, [1.5, -2], [], [null]), sql(unnested, TEXTS)])
    expect(error).toBeUndefined()
    expect(rows[0]).toMatchObject([{ bytes: BYTES, numbers: [1.5, -2], nothing: [], nulls: [null] }])
    expect(rows[1]?.map(({ text }) => text)).toEqual(TEXTS)
  }
  await disconnect(client)
})

test('a batch that fails changes nothing, reports the first error, and its statements can be sent again', async () => {
  const client = await open()
  await client.query('CREATE TABLE counts (number int PRIMARY KEY)')
  const insert = 'INSERT INTO counts VALUES ($1) RETURNING number'
  const divide = 'SELECT 1 / $1::int AS result'
  const failed = await sendAtOnce(client, [sql(insert, 1), sql(divide, 0), sql('SELECT count(*) AS count FROM counts')])
  expect(failed.error).toMatchObject({ code: '22012' })
  const all = [sql(insert, 1), sql(divide, 1), sql('SELECT count(*) AS count FROM counts'), sql(insert, 2)]
  expect(await sendAtOnce(client, all)).toEqual({ rows: [[{ number: 1 }], [{ result: 1 }], [{ count: 1 }], [{ number: 2 }]] })
  expect((await sendAtOnce(client, [sql(insert, 3), sql(insert, 1)])).error).toMatchObject({ code: '23505' })
  // Statements that were sent right after a batch that fails are not part of it.
  const [lost, kept] = await Promise.all([sendAtOnce(client, [sql(insert, 4), sql(divide, 0)]), sendAtOnce(client, [sql(insert, 5)])])
  expect([lost.error === undefined, kept]).toEqual([false, { rows: [[{ number: 5 }]] }])
  const { rows } = await client.query('SELECT number FROM counts ORDER BY number')
  expect(rows.map(({ number }) => number)).toEqual([1, 2, 5])
  await disconnect(client)
})

test('a client that stops in the middle of a batch loses it, and its locks', async () => {
  const [client, other] = await Promise.all([open(), open()])
  if (!endsInTime(client)) return
  await client.query(`SET transaction_timeout = ${LIMIT_MS}`)
  await client.query('CREATE TABLE locked (number int); INSERT INTO locked VALUES (1)')
  const { connection } = client as unknown as { connection: { parse(of: object): void; bind(of: object): void; execute(of: object): void } }
  const text = 'UPDATE locked SET number = 2 RETURNING number'
  connection.parse({ text, name: 'half' })
  connection.bind({ statement: 'half', values: [] })
  // Without the Sync that ends the transaction.
  connection.execute({})
  await expect.poll(async () => (await other.query("SELECT 1 FROM pg_locks WHERE relation = 'locked'::regclass")).rows.length).toBe(1)
  const { rows } = await other.query('UPDATE locked SET number = number + 10 RETURNING number')
  expect(rows).toEqual([{ number: 11 }])
  await Promise.all([disconnect(client), disconnect(other)])
})
