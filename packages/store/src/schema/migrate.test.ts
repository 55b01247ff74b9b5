import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { copyFirstRelease } from '@sluice/qa/first-release'
import { testHost } from '@sluice/testkit/host'
import { arrival } from '@sluice/testkit/store-rules/delivery-samples'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dropOldCopies } from '../connection/copy-before-upgrade.ts'
import { Database } from '../connection/database.ts'
import { openStore } from '../open-store.ts'
import { BASE } from './base.ts'
import { type MigrateOptions, migrate } from './migrate.ts'
import { MIGRATIONS } from './schema.ts'

let release: ReturnType<typeof copyFirstRelease>
let file: string
const { clock, log } = testHost()

beforeEach(() => {
  release = copyFirstRelease()
  file = join(release.dataDir, 'sluice.db')
})
afterEach(() => release.dispose())

const copyOf = (version: number): string => `${file}.before-schema-${version}`
const COPY = () => copyOf(MIGRATIONS.length)

function upgrade(options: Partial<MigrateOptions> = {}): void {
  const db = new Database(file)
  try {
    db.makeDurable()
    migrate(db, { file, log, nowMs: 5, ...options })
  } finally {
    db.close()
  }
}

function query<Row>(path: string, sql: string): Row[] {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return db.prepare(sql).all() as Row[]
  } finally {
    db.close()
  }
}
const SHOWN = 'SELECT number, message_id, state FROM inbox ORDER BY number'

/** Runs steps on an empty file, and returns the objects and rows that they leave, without comments and layout. */
function schemaAfter(steps: readonly string[]) {
  const db = new Database(join(mkdtempSync(join(release.dataDir, 'schema-')), 'empty.db'))
  try {
    for (const step of steps) db.exec(step)
    const objects = db.all<{ type: string; name: string; sql: string }>(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )
    return objects.map(({ type, name, sql }) => ({
      name,
      sql: sql
        .replace(/--.*$/gm, '')
        .replaceAll('"', '')
        .replace(/\s+/g, ' ')
        .replace(/ ?([(),]) ?/g, '$1'),
      rows: type === 'table' ? db.all(`SELECT * FROM "${name}"`) : [],
    }))
  } finally {
    db.close()
  }
}

test('a new file begins with the schema that the first migrations make', () => {
  const base = schemaAfter([BASE.sql])
  expect(base.length).toBeGreaterThan(90)
  expect(base).toEqual(schemaAfter(MIGRATIONS.slice(0, BASE.version)))
})

test('an upgrade keeps a complete, private copy of the old file and its log', () => {
  const before = query(file, SHOWN)
  expect(before.length).toBeGreaterThan(5)
  upgrade()
  expect(query(COPY(), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  expect(query(COPY(), 'PRAGMA user_version')).toEqual([{ user_version: 4 }])
  expect(query(COPY(), SHOWN)).toEqual(before)
  expect(statSync(COPY()).mode & 0o777).toBe(0o600)
  expect(query(file, SHOWN)).toEqual(before)
})

test('an upgraded file can shrink and records the time of its upgrade', () => {
  expect(query(file, 'PRAGMA auto_vacuum')).toEqual([{ auto_vacuum: 0 }])
  upgrade()
  expect(query(file, 'PRAGMA auto_vacuum')).toEqual([{ auto_vacuum: 2 }])
  expect(query(file, 'SELECT * FROM upgrades')).toEqual([{ at: 5, from_schema: 4 }])
})

test('a new or current file is neither copied nor recorded as upgraded', async () => {
  const fresh = join(release.dataDir, 'fresh.db')
  for (const _ of [1, 2]) await openStore({ file: fresh, clock, log }).close()
  expect(readdirSync(release.dataDir).filter((name) => name.startsWith('fresh'))).toEqual(['fresh.db'])
  expect(query(fresh, 'SELECT * FROM upgrades')).toEqual([])
  expect(query(fresh, 'PRAGMA auto_vacuum')).toEqual([{ auto_vacuum: 2 }])
})

test('without room for the copy the file is unchanged, and the error names the bytes', () => {
  expect(() => upgrade({ free: () => 1_000 })).toThrow(/too little room: \d{6,} bytes are needed, 1000 are free\. Make room/)
  expect(() => upgrade({ free: () => 1_000 })).toThrow(expect.objectContaining({ code: 'unavailable' }))
  expect(query(file, 'PRAGMA user_version')).toEqual([{ user_version: 4 }])
  expect(readdirSync(release.dataDir).filter((name) => name.includes('before-schema'))).toEqual([])
})

test('an upgrade derives the kind of a message, and the approval of a reply, from its session', async () => {
  const key = { runId: 'a/b ü%', stepId: "it's 100% «ok» \u{1f600}" }
  const lane = `approval:roomchat/${encodeURIComponent(key.runId)}/${encodeURIComponent(key.stepId)}`
  const before = new DatabaseSync(file)
  const insert = before.prepare(`
    INSERT INTO inbox (key, channel, account, message_id, sender, session, received_at, verdict, message_json)
    VALUES (?, 'roomchat', 'bot', ?, 'ann', ?, 1, 'test', '{"text":"yes"}')`)
  for (const [id, session] of Object.entries({ text: lane, press: 'approval:roomchat/17', turn: 'roomchat:room/a/b' }))
    insert.run(Buffer.from(id), id, session)
  before.close()
  upgrade()
  const rows = query<{ message_id: string }>(file, 'SELECT message_id, kind, approval_run_id, approval_step_id FROM inbox')
  const kind = 'approval_reply'
  expect(rows.filter(({ message_id }) => ['text', 'press', 'turn'].includes(message_id))).toEqual([
    { message_id: 'text', kind, approval_run_id: key.runId, approval_step_id: key.stepId },
    { message_id: 'press', kind, approval_run_id: null, approval_step_id: null },
    { message_id: 'turn', kind: null, approval_run_id: null, approval_step_id: null },
  ])
})

test('an unfinished copy of a crashed upgrade is replaced', () => {
  writeFileSync(`${COPY()}.part`, 'half of a database')
  writeFileSync(COPY(), 'of an attempt before')
  upgrade()
  expect(query(COPY(), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  expect(existsSync(`${COPY()}.part`)).toBe(false)
})

test('a failed copy leaves no partial file, and the database is unchanged', () => {
  mkdirSync(COPY())
  expect(() => upgrade()).toThrow()
  expect(readdirSync(release.dataDir).filter((name) => name.endsWith('.part'))).toEqual([])
  expect(query(file, 'PRAGMA user_version')).toEqual([{ user_version: 4 }])
})

test('a failed migration leaves the old schema', () => {
  const db = new Database(file)
  db.exec('CREATE TABLE upgrades (in_the_way TEXT)')
  db.close()
  expect(() => upgrade()).toThrow('already exists')
  expect(query(file, 'PRAGMA user_version')).toEqual([{ user_version: 4 }])
  expect(query(file, SHOWN).length).toBeGreaterThan(5)
})

test('only the last copy is kept, for thirty days', () => {
  writeFileSync(copyOf(3), 'of an earlier upgrade')
  writeFileSync(`${file}.before-schema-notes`, 'not a copy')
  upgrade()
  expect(existsSync(copyOf(3))).toBe(false)
  const DAY_MS = 86_400_000
  utimesSync(COPY(), 0, 0)
  dropOldCopies(file, 29 * DAY_MS)
  expect(existsSync(COPY())).toBe(true)
  dropOldCopies(file, 31 * DAY_MS)
  expect(existsSync(COPY())).toBe(false)
  expect(existsSync(`${file}.before-schema-notes`)).toBe(true)
})

const canMount = process.platform === 'linux' && process.getuid?.() === 0

test.runIf(canMount)('a disk that is too small for the copy refuses the upgrade', () => {
  const disk = mkdtempSync(join(tmpdir(), 'small-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk])
  try {
    expect(spawnSync('cp', [file, `${file}-wal`, disk]).status).toBe(0)
    const small = join(disk, 'sluice.db')
    expect(() => openStore({ file: small, clock, log })).toThrow(/bytes are needed, \d+ are free/)
    expect(query(small, 'PRAGMA user_version')).toEqual([{ user_version: 4 }])
  } finally {
    execFileSync('umount', [disk])
    rmSync(disk, { recursive: true })
  }
})

test('an upgrade keeps the content of messages, but not twice, and their numbers are not used again', async () => {
  const CONTENT = 'SELECT number, hex(raw) AS raw, message_json AS message FROM inbox ORDER BY number'
  const before = query<{ number: number; raw: string; message: string }>(file, CONTENT)
  const [{ seq = 0 } = {}] = query<{ seq: number }>(file, "SELECT seq FROM sqlite_sequence WHERE name = 'inbox'")
  const isTwice = ({ raw, message }: { raw: string; message: string }) => Buffer.from(raw, 'hex').toString() === message
  // A message that a connection has stored, as earlier releases do.
  const db = new DatabaseSync(file)
  db.prepare('UPDATE inbox SET raw = CAST(message_json AS BLOB) WHERE number = (SELECT max(number) FROM inbox)').run()
  db.exec("UPDATE sqlite_sequence SET seq = seq + 5 WHERE name = 'inbox'")
  db.close()
  upgrade()
  const after = query<{ number: number; raw: string; message: string }>(file, CONTENT)
  expect(after.map(({ number, message }) => [number, message])).toEqual(before.map(({ number, message }) => [number, message]))
  expect(after.filter(isTwice)).toEqual([])
  expect(after.slice(0, -1)).toEqual(before.slice(0, -1))
  expect(after.at(-1)?.raw).toBe('')
  const store = openStore({ file, clock, log })
  expect(await store.inbox.keep(arrival('new'))).toEqual([seq + 6])
  expect(await store.inbox.keep(arrival('newer'))).toEqual([seq + 7])
  expect(await store.check()).toEqual([])
  await store.close()
})

test('an upgrade computes the costs of dropped turns', () => {
  const before = new DatabaseSync(file)
  const step = MIGRATIONS.findIndex((sql) => sql.includes('CREATE TABLE dropped_costs'))
  for (const sql of MIGRATIONS.slice(4, step)) before.exec(sql)
  before.exec(`
    DELETE FROM turns;
    DELETE FROM costs_by_model;
    INSERT INTO turns (id, agent, source, status, input, model, input_tokens, output_tokens, cost_usd, created_at, ended_at) VALUES
      ('kept', 'main', 'test', 'done', '', 'a', 10, 1, 0.1, 0, 900000), ('alone', 'main', 'test', 'done', '', 'b', 20, 2, 0.5, 0, 900000);
    INSERT INTO costs_by_model VALUES
      (1, 'main', 'a', 0.1 + 0.2, 3, 30, 3), (1, 'main', 'b', 0.5, 1, 20, 2), (1, 'main', 'c', 0, 1, 5, 1), (1, 'main', '', 0.75, 0, 0, 0);
    PRAGMA user_version = ${step}`)
  before.close()
  upgrade()
  expect(query(file, 'SELECT model, usd, turns, input_tokens, output_tokens FROM dropped_costs ORDER BY model')).toEqual([
    { model: '', usd: 0.75, turns: 0, input_tokens: 0, output_tokens: 0 },
    { model: 'a', usd: expect.closeTo(0.2), turns: 2, input_tokens: 20, output_tokens: 2 },
    { model: 'c', usd: 0, turns: 1, input_tokens: 5, output_tokens: 1 },
  ])
})
