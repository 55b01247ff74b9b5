import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Database } from './database.ts'
import { GroupCommit } from './group-commit.ts'

const INSERT = 'INSERT INTO kept (text) VALUES (?)'

let folder: string
let file: string
let db: Database
let host: ReturnType<typeof testHost>
let writer: GroupCommit
let commits: number[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'group-commit-'))
  file = join(folder, 'test.db')
  db = new Database(file)
  db.makeDurable()
  db.exec('CREATE TABLE kept (text TEXT UNIQUE)')
  // The time for which a commit waits for a lock.
  db.exec('PRAGMA busy_timeout = 200')
  host = testHost()
  commits = []
  writer = new GroupCommit(db, { clock: host.clock, log: host.log, onCommit: (units) => commits.push(units) })
})

afterEach(() => {
  db.close()
  rmSync(folder, { recursive: true })
})

const keep = (text: string) => writer.write(() => db.run(INSERT, text))

const kept = () => db.all<{ text: string }>('SELECT text FROM kept ORDER BY rowid').map(({ text }) => text)

const outcomes = async (writes: readonly Promise<unknown>[]) =>
  (await Promise.allSettled(writes)).map((write) => (write.status === 'fulfilled' ? 'kept' : write.reason.code))

test('commits use a write-ahead log with full sync', () => {
  expect(db.get('PRAGMA journal_mode')).toMatchObject({ journal_mode: 'wal' })
  expect(db.get('PRAGMA synchronous')).toMatchObject({ synchronous: 2 })
})

test('all writes of one tick of the event loop share a commit', async () => {
  await Promise.all(Array.from({ length: 100 }, (_, at) => keep(`a${at}`)))
  await Promise.all([keep('b'), Promise.resolve().then(() => keep('c'))])
  await keep('d')
  expect(commits).toEqual([100, 2, 1])
})

test('512 waiting writes are committed at once', async () => {
  const writes = Array.from({ length: 511 }, (_, at) => keep(`${at}`))
  expect([writer.pending, commits]).toEqual([511, []])
  writes.push(keep('511'))
  expect([writer.pending, commits]).toEqual([0, [512]])
  writes.push(keep('512'))
  expect(writer.pending).toBe(1)
  await Promise.all(writes)
  expect(commits).toEqual([512, 1])
})

test('a write is acknowledged after its commit', async () => {
  const reader = new Database(file)
  const write = keep('a').then(() => reader.all('SELECT * FROM kept').length)
  expect(reader.all('SELECT * FROM kept')).toEqual([])
  expect(await write).toBe(1)
  reader.close()
})

test('a write that throws is rolled back, and the others are stored in order', async () => {
  const half = writer.write(() => {
    db.run(INSERT, 'half')
    throw new Error('after the first row')
  })
  const results = await Promise.allSettled([keep('a'), half, keep('b'), keep('a'), keep('c')])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
  await expect(half).rejects.toThrow('after the first row')
  expect(kept()).toEqual(['a', 'b', 'c'])
})

test('a full disk refuses only the writes that do not fit, and recovers', async () => {
  const pages = (extra: number) => {
    const count = db.get<{ page_count: number }>('PRAGMA page_count')?.page_count ?? 0
    db.exec(`PRAGMA max_page_count = ${count + extra}`)
  }
  pages(2)
  expect(await outcomes([keep('a'), keep('x'.repeat(100_000)), keep('b')])).toEqual(['kept', 'unavailable', 'kept'])
  await expect(keep('y'.repeat(100_000))).rejects.toMatchObject({
    message: 'The store cannot write now: database or disk is full',
    retryAfterSecs: 30,
  })
  expect(kept()).toEqual(['a', 'b'])
  expect(writer.health).toEqual({ lastCommitMs: expect.any(Number), fault: 'database or disk is full' })
  pages(1_000)
  expect(await outcomes([keep('x'.repeat(100_000))])).toEqual(['kept'])
  expect(writer.health).toMatchObject({ fault: null })
})

test('a damaged table stays a fault while other tables accept writes', async () => {
  const damaged = Object.assign(new Error('database disk image is malformed'), { errcode: 11, errstr: 'database disk image is malformed' })
  const write = writer.write(() => {
    throw damaged
  })
  await expect(write).rejects.toMatchObject({ code: 'unavailable' })
  expect(await outcomes([keep('a')])).toEqual(['kept'])
  expect(writer.health).toMatchObject({ fault: 'database disk image is malformed' })
})

test('a disk fault is logged once when it begins and once when it ends', async () => {
  db.exec('PRAGMA query_only = TRUE')
  expect(await outcomes([keep('a'), keep('b')])).toEqual(['unavailable', 'unavailable'])
  expect(await outcomes([keep('c')])).toEqual(['unavailable'])
  db.exec('PRAGMA query_only = FALSE')
  expect(await outcomes([keep('d'), keep('e')])).toEqual(['kept', 'kept'])
  expect(host.logs.map(({ level, message }) => [level, message])).toEqual([
    ['error', 'store cannot write'],
    ['info', 'store accepts writes again'],
  ])
})

test('a lock of another process delays a commit once, not once per write', async () => {
  const other = new Database(file)
  other.exec('BEGIN IMMEDIATE')
  const attempts = vi.spyOn(db, 'transaction')
  expect(await outcomes([keep('a'), keep('b'), keep('c')])).toEqual(['unavailable', 'unavailable', 'unavailable'])
  expect(attempts).toHaveBeenCalledTimes(1)
  other.exec('ROLLBACK')
  other.close()
  expect(await outcomes([keep('d')])).toEqual(['kept'])
  expect(kept()).toEqual(['d'])
})

test('a lock between separate writes delays them once', async () => {
  const other = new Database(file)
  writer = new GroupCommit(db, { clock: host.clock, log: host.log, onCommit: () => other.exec('BEGIN IMMEDIATE') })
  const attempts = vi.spyOn(db, 'transaction')
  expect(await outcomes([keep('a'), keep('a'), keep('b'), keep('c')])).toEqual(['kept', 'unavailable', 'unavailable', 'unavailable'])
  // All in one transaction, of which the second write fails; then the first write alone; then one that waits for the lock.
  expect(attempts).toHaveBeenCalledTimes(3)
  other.close()
  expect(kept()).toEqual(['a'])
})

test('closing commits waiting writes and refuses later ones', async () => {
  const write = keep('a')
  writer.close()
  expect(kept()).toEqual(['a'])
  expect(await write).toBe(1)
  await expect(keep('b')).rejects.toMatchObject({ code: 'unavailable', message: 'The store is closed.' })
})
