import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { openPostgresStore } from '../open-store.ts'
import { startPostgres, type TestServer } from './postgres-server.ts'

let server: TestServer
afterEach(() => server.stop())

const ask = async (url: string, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

test('a standby has what was committed, and takes writes once it is promoted', async () => {
  server = await startPostgres({ inMemory: true })
  await ask(server.url, 'CREATE TABLE kept (number int)')
  const standby = await server.addStandby()
  await ask(server.url, 'INSERT INTO kept VALUES (7)')
  await expect(ask(standby.url, 'INSERT INTO kept VALUES (8)')).rejects.toThrow('read-only')
  await server.kill()
  await standby.promote()
  await expect.poll(() => ask(standby.url, 'INSERT INTO kept VALUES (9)').catch(String)).toEqual([])
  expect(await ask(standby.url, 'SELECT number FROM kept ORDER BY number')).toEqual([{ number: 7 }, { number: 9 }])
})

test('with a standby as well, the error names the server that does not answer', async () => {
  server = await startPostgres({ inMemory: true })
  const standby = await server.addStandby()
  const url = `postgres://postgres@127.0.0.1:${server.port},127.0.0.1:${standby.port}/postgres`
  await expect(openPostgresStore({ url: standby.url, node: 'node' })).rejects.toThrow('The server is a standby')
  await server.kill()
  await expect(openPostgresStore({ url, node: 'node' })).rejects.toThrow('ECONNREFUSED')
  await standby.promote()
  await expect.poll(() => ask(standby.url, 'SELECT pg_is_in_recovery() AS standby')).toEqual([{ standby: false }])
  const store = await openPostgresStore({ url, node: 'node' })
  expect(await store.inbox.counts()).toBeDefined()
  await store.close()
})
