/** Failovers by Patroni, as docs/cluster.md#fencing describes them, with the programs of Debian. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { KeyValue, SeenDatabase } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import pg from 'pg'
import { expect, test } from 'vitest'
import { openPostgresStore } from './open-store.ts'
import { type Member, startPatroni } from './testing/patroni.ts'

const INSTALLED = '/usr/lib/postgresql'
const version = existsSync(INSTALLED)
  ? readdirSync(INSTALLED).find((name) => existsSync(join(INSTALLED, name, 'bin/pg_rewind')))
  : undefined
const SOON = { timeout: 120_000, interval: 500 }

/** Resolves to the value of the one column of the one row. */
async function value(url: string, text: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000, query_timeout: 5_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query({ text, rowMode: 'array' })
    return rows[0]?.[0]
  } finally {
    await client.end().catch(() => undefined)
  }
}

const follows = (member: Member) => value(member.url, 'SELECT pg_is_in_recovery()').catch(() => 'no answer')
/** Whether Patroni may promote the standby of this primary: it learns a moment later than the server that the standby is synchronous. */
const hasSyncStandby = (primary: Member) =>
  primary.ask('/cluster').then(
    ({ text }) => text.includes('"sync_standby"'),
    () => false,
  )

/** Writes keys one after the other until it is stopped, and remembers those that were acknowledged. */
function keepWriting(values: KeyValue) {
  const acknowledged: string[] = []
  let isStopped = false
  const done = (async () => {
    for (let number = 0; !isStopped; number++) {
      const key = `key ${String(number).padStart(6, '0')}`
      await values.set(key, number).then(
        () => acknowledged.push(key),
        () => undefined,
      )
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })()
  return {
    acknowledged,
    async stop() {
      isStopped = true
      await done
    },
  }
}

test('a daemon goes on over the loss of a server, its return and a switchover, and loses no acknowledged write', {
  timeout: 400_000,
}, async (context) => {
  if (version === undefined) return context.skip(`Debian's PostgreSQL is not installed in ${INSTALLED}`)
  const servers = await startPatroni(join(INSTALLED, version))
  if ('missing' in servers) return context.skip(servers.missing)
  const [first, second] = servers.members
  try {
    first.start()
    await expect.poll(() => follows(first), SOON).toBe(false)
    second.start()
    await expect.poll(() => hasSyncStandby(first), SOON).toBe(true)

    const seen: SeenDatabase[] = []
    const record = { read: () => seen.at(-1), write: (_: string, now: SeenDatabase) => void seen.push(now) }
    const url = first.url.replace(`:${first.port}/`, `:${first.port},127.0.0.1:${second.port}/`)
    const store = await openPostgresStore({ url, node: 'node', readers: 1, writers: 1, connectMs: 2_000, record, log: testHost().log })
    const writing = keepWriting(store.keyValue('walk'))
    const goesOn = async (): Promise<void> => {
      const before = writing.acknowledged.length
      await expect.poll(() => writing.acknowledged.length - before, SOON).toBeGreaterThan(20)
    }
    await goesOn()

    // The machine of the primary is lost, and comes back.
    await first.kill()
    await expect.poll(() => follows(second), SOON).toBe(false)
    await goesOn()
    first.start()
    await expect.poll(() => hasSyncStandby(second), SOON).toBe(true)
    expect(await follows(first)).toBe(true)
    await goesOn()

    expect(await second.ask('/switchover', { leader: 'db-2', candidate: 'db-1' })).toMatchObject({ status: 200 })
    await expect.poll(() => follows(first), SOON).toBe(false)
    await expect.poll(() => hasSyncStandby(first), SOON).toBe(true)
    await goesOn()

    await writing.stop()
    const kept = new Set((await store.keyValue('walk').list('', 1_000_000)).map(({ key }) => key))
    expect(writing.acknowledged.filter((key) => !kept.has(key))).toEqual([])
    await store.close()
  } finally {
    await servers.stop()
  }
})
