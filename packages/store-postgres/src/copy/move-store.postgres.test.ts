import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '@sluice/kit'
import { copyFirstRelease } from '@sluice/qa/first-release'
import type { Store, StoreMove, StoreMoveOptions } from '@sluice/sdk'
import { openSecretBox, openStore, secretStore } from '@sluice/store'
import { COPIED_TABLES, LEFT_OUT_TABLES } from '@sluice/store/copied-tables'
import { openRowSigner } from '@sluice/store/row-signer'
import { secretKeyIds } from '@sluice/store/secret-box'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { STORE_RULES } from '@sluice/testkit/store'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { markRecovered } from '../maintenance/mark-recovered.ts'
import { openPostgresStore } from '../open-store.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'
import { moveStore } from './move-store.ts'
import { COPIED_NAMES, LEFT_OUT } from './postgres-copy.ts'

let server: TestServer
let folder: string
let made = 0
beforeAll(async () => {
  folder = mkdtempSync(existsSync('/dev/shm') ? '/dev/shm/sluice-move-' : '/tmp/sluice-move-')
  // All data directories have the same key, because they use one database.
  openRowSigner(folder).keyId()
  server = await startPostgres({ inMemory: true })
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await server.stop()
})

const newDir = (): string => {
  const dir = join(folder, `data-${made++}`)
  mkdirSync(dir)
  cpSync(join(folder, 'secret.key'), join(dir, 'secret.key'))
  return dir
}
const newSchema = (): string => `moved_${made++}`

function move(dataDir: string, schema: string, to: 'server' | 'embedded', more: Partial<StoreMoveOptions> = {}): Promise<StoreMove> {
  return moveStore({
    dataDir,
    url: server.url,
    schema,
    tls: 'auto',
    connectMs: 5000,
    node: 'mover',
    ...keysOf(dataDir),
    clock: systemClock,
    log: testHost().log,
    to,
    restart: false,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    ...more,
  })
}

const keysOf = (dir: string) => ({ keyIds: secretKeyIds(dir), signer: openRowSigner(dir) })

const openSchema = (schema: string, dir = folder): Promise<Store> =>
  openPostgresStore({ url: server.url, schema, node: 'node', readers: 1, writers: 1, log: testHost().log, ...keysOf(dir) })

/** Every row of the file, and the numbers that are not used again. */
function dump(file: string): Record<string, unknown[]> {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const tables = COPIED_TABLES.map(({ name }) => name)
    const rows = tables.map((name): [string, unknown[]] => {
      const hidden = COPIED_TABLES.some((table) => table.name === name && table.hasHiddenNumber) ? 'rowid AS hidden, ' : ''
      return [name, db.prepare(`SELECT ${hidden}* FROM ${name} ORDER BY 1, 2`).all()]
    })
    const sequences = db
      .prepare("SELECT name, seq FROM sqlite_sequence WHERE name NOT IN ('inbox', 'leases') AND seq > 0 ORDER BY name")
      .all()
    const inbox = db
      .prepare('SELECT max((SELECT highest FROM inbox_numbers), coalesce((SELECT max(number) FROM inbox), 0)) AS highest')
      .all()
    return { ...Object.fromEntries(rows), sequences, inbox_numbers: inbox }
  } finally {
    db.close()
  }
}

/** Names each column of each table that is filled in the dump. */
const filled = (dumped: Record<string, unknown[]>): Set<string> =>
  new Set(
    Object.entries(dumped).flatMap(([table, rows]) =>
      rows.flatMap((row) => Object.entries(row as object).flatMap(([column, value]) => (value === null ? [] : [`${table}.${column}`]))),
    ),
  )

/** Runs every rule of the store on a file of its own. Returns few folders whose files together fill each column that any rule fills. */
async function filledByRules(): Promise<{ dirs: string[]; seen: Set<string> }> {
  const columns = new Map<string, Set<string>>()
  for (const [rule, hold] of Object.values(STORE_RULES).flatMap((rules) => Object.entries(rules))) {
    const dir = newDir()
    const file = join(dir, 'sluice.db')
    const clock = testClock()
    const opened: Store[] = []
    const open = (): Store => {
      const store = openStore({ file, clock, log: testHost().log })
      opened.push(store)
      return store
    }
    const store = open()
    await hold({
      store,
      clock,
      otherProcess: async () => open(),
      async restart() {
        await store.close()
        return open()
      },
    }).catch((error: unknown) => {
      throw new Error(`the rule '${rule}' fails`, { cause: error })
    })
    for (const one of opened) await one.close()
    // Every rule that counts quick messages ends with their answer, which forgets the count.
    if (rule === Object.keys(STORE_RULES.admissions ?? {})[0]) insertLoop(file)
    columns.set(dir, filled(dump(file)))
  }
  const dirs: string[] = []
  const seen = new Set<string>()
  for (;;) {
    const fresh = (dir: string): number => [...(columns.get(dir) ?? [])].filter((column) => !seen.has(column)).length
    const [best] = [...columns.keys()].toSorted((a, b) => fresh(b) - fresh(a))
    if (best === undefined || fresh(best) === 0) return { dirs, seen }
    dirs.push(best)
    for (const column of columns.get(best) ?? []) seen.add(column)
  }
}

function insertLoop(file: string): void {
  const db = new DatabaseSync(file)
  db.exec("INSERT INTO loops (session, number, quick, answered_at) VALUES ('channel:chatapp/1/2/3', 4, 2, 1767225600000)")
  db.close()
}

test('what every rule of the store leaves behind is the same after a move to PostgreSQL and back', { timeout: 400_000 }, async () => {
  const { dirs, seen } = await filledByRules()
  for (const { name } of COPIED_TABLES)
    expect(
      [...seen].some((column) => column.startsWith(`${name}.`)),
      name,
    ).toBe(true)
  for (const dir of dirs) {
    const file = join(dir, 'sluice.db')
    const [before, bytes, schema] = [dump(file), readFileSync(file), newSchema()]
    const there = await move(dir, schema, 'server')
    expect(readFileSync(file).equals(bytes)).toBe(true)
    expect(dump(file)).toEqual(before)
    renameSync(file, join(dir, 'before.db'))
    const back = await move(dir, schema, 'embedded')
    expect(dump(file)).toEqual(before)
    expect(back.tables).toEqual(there.tables)
  }
})

test('every table of both databases is copied or left out on purpose', async () => {
  const dir = newDir()
  await openStore({ file: join(dir, 'sluice.db'), log: testHost().log }).close()
  const schema = newSchema()
  await (await openSchema(schema)).close()
  const client = new pg.Client(server.url)
  await client.connect()
  const { rows } = await client.query('SELECT tablename AS name FROM pg_tables WHERE schemaname = $1', [schema])
  await client.end()
  const copied = COPIED_TABLES.map(({ name }) => name)
  expect(rows.map(({ name }) => name).toSorted()).toEqual([...COPIED_NAMES, ...LEFT_OUT].toSorted())
  const db = new DatabaseSync(join(dir, 'sluice.db'), { readOnly: true })
  const own = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'memory_words%'").all()
  db.close()
  expect(own.map(({ name }) => String(name)).toSorted()).toEqual([...copied, ...LEFT_OUT_TABLES].toSorted())
})

test('the data of the first release is upgraded in a copy, and its secrets and audit log are checked', { timeout: 60_000 }, async () => {
  const release = copyFirstRelease()
  const file = join(release.dataDir, 'sluice.db')
  const before = [readFileSync(file), readFileSync(`${file}-wal`)]
  const schema = newSchema()
  const moved = await move(release.dataDir, schema, 'server')
  expect(moved.auditFault).toBeNull()
  expect(moved.auditRecords).toBeGreaterThan(0)
  expect(moved.tables.find(({ name }) => name === 'inbox')?.rows).toBeGreaterThan(0)
  expect([readFileSync(file), readFileSync(`${file}-wal`)]).toEqual(before)
  expect(existsSync(`${file}.to-copy`)).toBe(false)
  const store = await openSchema(schema, release.dataDir)
  expect((await store.sops.verify()).broken).toBeNull()
  expect((await store.usage()).upgradedAtMs).not.toBeNull()
  await store.close()
  release.dispose()
})

test('secrets decrypt with the key of the directory, and one that does not is named', { timeout: 30_000 }, async () => {
  const dir = newDir()
  const store = openStore({ file: join(dir, 'sluice.db'), log: testHost().log })
  const secrets = secretStore(openSecretBox(dir), store.keyValue('secret:channel-x'), 'secrets.channel-x')
  await secrets.set('token', 'a secret')
  await store.keyValue('secret:channel-x').set('broken', 'enc:1:00000000:AAAA')
  await store.close()
  const schema = newSchema()
  expect(await move(dir, schema, 'server')).toMatchObject({ secrets: 1, unreadableSecrets: ['secrets.channel-x.broken'] })
  const moved = await openSchema(schema)
  expect(await secretStore(openSecretBox(dir), moved.keyValue('secret:channel-x'), 'secrets.channel-x').get('token')).toBe('a secret')
  await moved.close()
})

async function fillMany(dir: string, count: number): Promise<void> {
  const store = openStore({ file: join(dir, 'sluice.db'), log: testHost().log })
  const values = store.keyValue('many')
  await values.setAll(new Map(Array.from({ length: count }, (_, at) => [`key ${at}`, `value ${at} ${'x'.repeat(500)}`])))
  await store.close()
}

test('a copy that was killed continues where it stopped, and no daemon uses it before its end', { timeout: 60_000 }, async () => {
  const dir = newDir()
  await fillMany(dir, 20_000)
  const schema = newSchema()
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../fixtures/move-store.ts'), dir, server.url, schema], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: child.stdout })) {
    if (Number(line.split(' ')[1]) < 5_000) continue
    child.kill('SIGKILL')
    break
  }
  await once(child, 'exit')
  await expect(openSchema(schema)).rejects.toThrow(/unfinished copy/)
  const other = newDir()
  await fillMany(other, 1)
  await expect(move(other, schema, 'server')).rejects.toThrow(/unfinished copy of .*--restart/)
  const moved = await move(dir, schema, 'server')
  expect(moved.resumedRows).toBeGreaterThanOrEqual(5_000)
  expect(moved.resumedRows).toBeLessThan(20_000)
  expect(moved.tables.find(({ name }) => name === 'key_values')?.rows).toBe(20_000)
  await (await openSchema(schema)).close()
})

test('a copy replaces the empty file that the creation of a key leaves', async () => {
  const dir = newDir()
  await openStore({ file: join(dir, 'sluice.db'), log: testHost().log }).close()
  const schema = newSchema()
  await move(dir, schema, 'server')
  const target = newDir()
  rmSync(join(target, 'secret.key'))
  openSecretBox(target).encrypt('', '')
  cpSync(join(folder, 'secret.key'), join(target, 'secret.key'))
  expect(statSync(join(target, 'sluice.db')).size).toBe(0)
  await move(target, schema, 'embedded')
  expect(dump(join(target, 'sluice.db'))).toEqual(dump(join(dir, 'sluice.db')))
})

test('a recovery of a database without tables names the settings', async () => {
  const recovered = markRecovered({
    settings: { url: server.url, schema: newSchema() },
    atMs: 1,
    nowMs: 2,
    about: { keyIds: [], log: testHost().log },
  })
  await expect(recovered).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining('[store] url') })
})

test('a copy that is interrupted goes on in the other direction, too', { timeout: 60_000 }, async () => {
  const dir = newDir()
  await fillMany(dir, 5_000)
  const schema = newSchema()
  await move(dir, schema, 'server')
  const target = newDir()
  const stop = new AbortController()
  const first = move(target, schema, 'embedded', {
    signal: stop.signal,
    onProgress: ({ rows }) => rows >= 2_000 && stop.abort(new Error('stopped')),
  })
  await expect(first).rejects.toThrow('stopped')
  expect(existsSync(join(target, 'sluice.db'))).toBe(false)
  const moved = await move(target, schema, 'embedded')
  expect(moved.resumedRows).toBeGreaterThanOrEqual(1_500)
  expect(dump(join(target, 'sluice.db'))).toEqual(dump(join(dir, 'sluice.db')))
})

test('a source that changed after an interrupted attempt is noticed, and --restart begins again', { timeout: 60_000 }, async () => {
  const dir = newDir()
  await fillMany(dir, 2_000)
  const schema = newSchema()
  const stop = new AbortController()
  const options = { signal: stop.signal, onProgress: ({ rows }: { rows: number }) => rows >= 1_000 && stop.abort(new Error('stopped')) }
  await expect(move(dir, schema, 'server', options as Partial<StoreMoveOptions>)).rejects.toThrow('stopped')
  const store = openStore({ file: join(dir, 'sluice.db'), log: testHost().log })
  await store.keyValue('many').set('key 1', 'changed')
  await store.close()
  await expect(move(dir, schema, 'server')).rejects.toThrow(/key_values differs.*--restart/)
  await expect(openSchema(schema)).rejects.toThrow(/unfinished copy/)
  expect((await move(dir, schema, 'server', { restart: true })).resumedRows).toBe(0)
})

test('a target with data, a schema without any, and a running daemon are refused', { timeout: 60_000 }, async () => {
  const [dir, schema] = [newDir(), newSchema()]
  await fillMany(dir, 1)
  await move(dir, schema, 'server')
  await expect(move(dir, schema, 'server')).rejects.toThrow(/has data already \(key_values\)/)
  await expect(move(dir, schema, 'embedded')).rejects.toThrow(/has data already \(key_values\)/)
  await expect(move(newDir(), newSchema(), 'embedded')).rejects.toThrow(/no schema/)
  await expect(move(newDir(), newSchema(), 'server')).rejects.toThrow(/There is no database/)
  const daemon = await openSchema(schema)
  await daemon.leases.acquire('shards/0-255')
  await expect(move(newDir(), schema, 'embedded')).rejects.toThrow(/A daemon works with the database \(node\)/)
  await daemon.close()
  await move(newDir(), schema, 'embedded')
})

test('the configuration of a cluster is handed over with the copy, in its newest version', { timeout: 30_000 }, async () => {
  const [dir, schema] = [newDir(), newSchema()]
  await fillMany(dir, 1)
  expect((await move(dir, schema, 'server')).clusterConfig).toBeNull()
  const cluster = { name: 'test', node: 'node-1', roles: ['worker'], url: null, version: '1.0.0' } as const
  const store = await openPostgresStore({
    url: server.url,
    schema,
    node: 'node',
    cluster,
    readers: 1,
    writers: 1,
    log: testHost().log,
    ...keysOf(folder),
  })
  await store.cluster?.config.replace('first = 1\n', 0, 'node-1')
  await store.cluster?.config.replace('second = 2\n', 1, 'node-1')
  await store.close()
  expect((await move(newDir(), schema, 'embedded')).clusterConfig).toEqual({ version: 2, text: 'second = 2\n' })
})

test('signs a copy, and refuses to copy unsigned rows back', { timeout: 30_000 }, async () => {
  const [dir, schema] = [newDir(), newSchema()]
  await fillMany(dir, 1_200)
  await move(dir, schema, 'server')
  const store = await openSchema(schema)
  expect(await store.unverifiedRows?.()).toMatchObject({ isDemanded: true, unverified: [] })
  await store.close()
  const client = new pg.Client({ connectionString: server.url, options: `-c search_path=${schema}` })
  await client.connect()
  await client.query(`INSERT INTO devices (id, name, role, token_hash, created_at) VALUES ('own', 'x', 'operator', 'x', 1)`)
  await expect(move(newDir(), schema, 'embedded')).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringMatching(/refused: devices\/own\. .*sluice cluster sign/),
  })
  await client.query('DELETE FROM devices')
  await client.end()
  expect((await move(newDir(), schema, 'embedded')).tables.find(({ name }) => name === 'key_values')?.rows).toBe(1_200)
})

test('numbers that were given before are not given again', { timeout: 30_000 }, async () => {
  const [dir, schema] = [newDir(), newSchema()]
  const file = join(dir, 'sluice.db')
  await openStore({ file, log: testHost().log }).close()
  const db = new DatabaseSync(file)
  db.exec("INSERT INTO sqlite_sequence VALUES ('outbox', 70), ('sessions', 8); UPDATE inbox_numbers SET highest = 40")
  db.close()
  const before = dump(file)
  await move(dir, schema, 'server')
  const client = new pg.Client({ connectionString: server.url, options: `-c search_path=${schema}` })
  await client.connect()
  const { rows } = await client.query(
    "SELECT nextval(pg_get_serial_sequence('outbox', 'number')) AS outbox, nextval(pg_get_serial_sequence('inbox', 'number')) AS inbox",
  )
  await client.end()
  expect(rows).toEqual([{ outbox: '71', inbox: '41' }])
  cpSync(file, join(dir, 'before.db'))
  rmSync(file)
  await move(dir, schema, 'embedded')
  expect(dump(file)).toEqual({
    ...before,
    inbox_numbers: [{ highest: 41 }],
    sequences: [
      { name: 'outbox', seq: 71 },
      { name: 'sessions', seq: 8 },
    ],
  })
})
