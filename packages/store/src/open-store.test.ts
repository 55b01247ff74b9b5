import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync, watch, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UNOWNED_MEMORIES } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { own } from '@sluice/testkit/store-rules/store-bench'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Database } from './connection/database.ts'
import { openStore } from './open-store.ts'
import { MIGRATIONS } from './schema/schema.ts'

let folder: string
const host = testHost()
const open = (file: string) => openStore({ file, clock: host.clock, log: host.log })

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'open-store-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

const modeOf = (path: string) => statSync(path).mode & 0o777

test('the file, its log and its folder are readable only by the user', async () => {
  const file = join(folder, 'data', 'deeper', 'sluice.db')
  const store = open(file)
  await store.keyValue('x').set('a', 1)
  expect([file, `${file}-wal`, `${file}-shm`].map(modeOf)).toEqual([0o600, 0o600, 0o600])
  expect([join(folder, 'data'), join(folder, 'data', 'deeper')].map(modeOf)).toEqual([0o700, 0o700])
  await store.close()
})

test.runIf(process.platform === 'linux')('writing turns creates no temporary file', async () => {
  const file = join(folder, 'sluice.db')
  const temporary = join(folder, 'temporary')
  mkdirSync(temporary)
  // The migrations may create some.
  await open(file).close()
  const created: unknown[] = []
  const watcher = watch(temporary, (_, name) => created.push(name))
  const script = join(import.meta.dirname, '..', 'fixtures', 'store-turns.ts')
  const env = { ...process.env, SQLITE_TMPDIR: temporary }
  const child = spawn(process.execPath, [script, file], { env, stdio: 'inherit' })
  expect(await once(child, 'exit')).toEqual([0, null])
  writeFileSync(join(temporary, 'last'), '')
  await expect.poll(() => created).toContain('last')
  watcher.close()
  expect(new Set(created)).toEqual(new Set(['last']))
})

test('a closed store is one file', async () => {
  const file = join(folder, 'sluice.db')
  const store = open(file)
  await store.turns.finish(turnEnd('t1'))
  await store.close()
  expect([`${file}-wal`, `${file}-shm`].filter((path) => existsSync(path))).toEqual([])
})

test('a file of a newer release is refused and unchanged', async () => {
  const file = join(folder, 'sluice.db')
  await open(file).close()
  const db = new Database(file)
  db.exec('PRAGMA user_version = 99')
  db.close()
  expect(() => open(file)).toThrow(/was written by a newer release \(schema 99; this release supports up to \d+\)/)
  expect(() => open(file)).toThrow(expect.objectContaining({ code: 'data_newer' }))
})

test('a file of the first release is upgraded with its unfinished turns', async () => {
  const file = join(folder, 'sluice.db')
  const db = new Database(file)
  db.exec(`${MIGRATIONS[0]}; PRAGMA user_version = 1`)
  db.exec("INSERT INTO turns (id, source, status, input, created_at) VALUES ('t1', 'webhook', 'running', 'hello', 5)")
  db.close()
  const store = open(file)
  expect(await (await own(store)).turns.unfinished(10)).toMatchObject([{ id: 't1', input: 'hello', createdAtMs: 5 }])
  expect(await store.inbox.counts()).toEqual({ pending: 0, running: 0, dead: 0 })
  expect(await store.check()).toEqual([])
  await store.close()
})

test('devices and codes without a role become operators', async () => {
  const file = join(folder, 'sluice.db')
  const db = new Database(file)
  db.exec(`${MIGRATIONS.slice(0, 4).join(';')}; PRAGMA user_version = 4`)
  db.exec("INSERT INTO devices (id, name, token_hash, created_at) VALUES ('d1', 'phone', 'h', 5)")
  db.exec("INSERT INTO pairing_codes (hash, expires_at) VALUES ('c', 1e18)")
  db.close()
  const store = open(file)
  expect(await store.devices.findByTokenHash('h')).toMatchObject({ id: 'd1', role: 'operator' })
  const device = { id: 'd2', name: 'n', tokenHash: 'i', createdAtMs: 5, expiresAtMs: null }
  expect(await store.devices.redeemCode('c', device)).toBe('operator')
  await store.close()
})

test('a file of the second schema is upgraded with its waiting messages', async () => {
  const file = join(folder, 'sluice.db')
  const db = new Database(file)
  db.exec(`${MIGRATIONS[0]}; ${MIGRATIONS[1]}; PRAGMA user_version = 2`)
  db.exec(`
    INSERT INTO inbox (key, channel, account, message_id, sender, session, received_at, verdict, message_json)
    VALUES (x'00', 'roomchat', 'bot', 'm1', 's', 'room', 5, 'signature', '{"text":"hello"}');
    INSERT INTO outbox (channel, account, to_json, text, part, parts, client_id, created_at)
    VALUES ('roomchat', 'bot', '{"to":"room"}', 'hi', 1, 1, 'c1', 5)`)
  db.close()
  const store = open(file)
  expect(await store.inbox.start(1, 't1', 5)).toMatchObject({ message: { text: 'hello' }, draft: null })
  const started = await store.outbox.start(1)
  expect(started).toMatchObject({ text: 'hi' })
  expect(started).not.toHaveProperty('extras')
  expect(await store.sops.verify()).toMatchObject({ records: 0, broken: null })
  expect(await (await own(store)).approvals.unfinished({ after: null, limit: 10 })).toEqual([])
  expect(await store.check()).toEqual([])
  await store.close()
})

test('an approval of an earlier release waits on and is decided', async () => {
  const file = join(folder, 'sluice.db')
  const db = new Database(file)
  const before = MIGRATIONS.findIndex((sql) => sql.includes('decided_standing'))
  db.exec(`${MIGRATIONS.slice(0, before).join(';')}; PRAGMA user_version = ${before}`)
  db.exec(`
    INSERT INTO approvals (run_id, step_id, gate, workflow, title, message, approve_json, reject_json, created_at, token)
    VALUES ('t1', 'call-1', 'tool', 'shell', 'shell wants to run', 'command: ls', '["yes"]', '["no"]', 5, 'k')`)
  db.close()
  const store = open(file)
  const key = { runId: 't1', stepId: 'call-1' }
  expect(await store.approvals.get(key)).toMatchObject({ state: 'pending', decider: null, standing: null, sources: [], byStanding: null })
  const decision = { state: 'approved', by: 'roomchat:ann', standing: 'listed', feedback: null, atMs: 6 } as const
  expect(await store.approvals.decide(key, decision)).toMatchObject({ won: true, approval: { state: 'approved', byStanding: 'listed' } })
  await store.close()
})

test('memories without an owner stay readable until an operator assigns them', async () => {
  const file = join(folder, 'sluice.db')
  const db = new Database(file)
  db.exec(`${MIGRATIONS.slice(0, 4).join(';')}; PRAGMA user_version = 4`)
  db.exec(`
    INSERT INTO memories (key, content, category, updated_at) VALUES ('gone', 'nothing', 'core', 1), ('pet', 'a dog named Zoë', 'core', 2);
    DELETE FROM memories WHERE key = 'gone'`)
  db.close()
  const { memory, check, close } = open(file)
  const pet = { owner: UNOWNED_MEMORIES, key: 'pet', content: 'a dog named Zoë', category: 'core', untrusted: true, updatedAtMs: 2 }
  for (const reader of ['device:a', 'device:b']) expect(await memory.search(reader, 'zoe', 5)).toEqual([pet])
  expect(await memory.assign({ from: UNOWNED_MEMORIES, to: 'device:a' })).toBe(1)
  expect(await memory.search('device:a', 'zoe', 5)).toEqual([{ ...pet, owner: 'device:a' }])
  expect(await memory.search('device:b', 'zoe', 5)).toEqual([])
  await memory.put({ owner: 'device:a', key: 'pet', content: 'a cat', category: 'core', untrusted: false, atMs: 3 })
  expect(await memory.search('device:a', 'zoe', 5)).toEqual([])
  expect(await check()).toEqual([])
  await close()
})

test('an upgraded file records that its procedures ran without agreements', async () => {
  const file = join(folder, 'sluice.db')
  const db = new Database(file)
  db.exec(`${MIGRATIONS.slice(0, 4).join(';')}; PRAGMA user_version = 4`)
  db.close()
  const upgraded = open(file)
  expect(await upgraded.keyValue('sop').get('agree_to_workspace')).toBe(true)
  await upgraded.close()
  const fresh = open(join(folder, 'fresh.db'))
  expect(await fresh.keyValue('sop').list('', 10)).toEqual([])
  await fresh.close()
})

test('a file that is not a store is refused as unavailable', () => {
  const text = join(folder, 'text.db')
  writeFileSync(text, 'this is a text, and a long one at that. '.repeat(100))
  mkdirSync(join(folder, 'folder.db'))
  for (const file of [text, join(folder, 'folder.db'), join(text, 'below.db')]) {
    expect(() => open(file)).toThrow(expect.objectContaining({ code: 'unavailable' }))
  }
})

test('several processes can create a store at the same time', async () => {
  const file = join(folder, 'sluice.db')
  const script = join(import.meta.dirname, '..', 'fixtures', 'open-on-signal.ts')
  const children = [1, 2, 3].map(() => spawn(process.execPath, [script, file], { stdio: ['pipe', 'pipe', 'inherit'] }))
  await Promise.all(children.map((child) => once(child.stdout, 'data')))
  const ends = children.map((child) => once(child, 'exit'))
  for (const child of children) child.stdin.end()
  expect(await Promise.all(ends)).toEqual([1, 2, 3].map(() => [0, null]))
  const store = open(file)
  expect(await store.keyValue('test').list('', 10)).toHaveLength(3)
  await store.close()
})

test('a check finds a damaged page', async () => {
  const file = join(folder, 'sluice.db')
  const store = open(file)
  await Promise.all(Array.from({ length: 50 }, (_, at) => store.turns.finish(turnEnd(`t${at}`))))
  await store.close()
  const db = new Database(file)
  const page = db.get<{ rootpage: number }>("SELECT rootpage FROM sqlite_schema WHERE name = 'turns'")?.rootpage ?? 0
  db.close()
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, Buffer.alloc(4096, 0xa5), 0, 4096, (page - 1) * 4096)
  closeSync(descriptor)
  const broken = open(file)
  expect((await broken.check()).length).toBeGreaterThan(0)
  await expect(broken.turns.get('any')).rejects.toMatchObject({ code: 'unavailable' })
  await broken.close()
})

test('a check finds messages without a session', async () => {
  const file = join(folder, 'sluice.db')
  await open(file).close()
  const db = new Database(file)
  db.exec("PRAGMA foreign_keys = OFF; INSERT INTO messages VALUES (7, 1, '[]', 0)")
  db.close()
  const store = open(file)
  expect(await store.check()).toEqual([{ detail: 'row 1 of messages refers to a missing row of sessions' }])
  await store.close()
})

const canMount = process.platform === 'linux' && process.getuid?.() === 0

test.runIf(canMount)('a full disk loses no acknowledged write and recovers without reopening', async () => {
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk])
  try {
    const store = open(join(disk, 'sluice.db'))
    const ballast = join(disk, 'ballast')
    writeFileSync(ballast, Buffer.alloc(1024 * 1024))
    const acknowledged: string[] = []
    const refusals = new Set<unknown>()
    for (let at = 0; at < 200; at++) {
      const id = `t${at}`
      await store.turns.finish(turnEnd(id, { input: 'x'.repeat(20_000) })).then(
        () => acknowledged.push(id),
        (error: unknown) => refusals.add(error instanceof Error && 'code' in error ? error.code : error),
      )
    }
    expect(acknowledged.length).toBeGreaterThan(0)
    expect([...refusals]).toEqual(['unavailable'])
    expect(await store.turns.get(acknowledged.at(-1) ?? '')).toMatchObject({ status: 'done' })

    rmSync(ballast)
    await store.turns.finish(turnEnd('after'))
    const again = open(join(disk, 'sluice.db'))
    for (const id of [...acknowledged, 'after']) expect(await again.turns.get(id)).toMatchObject({ status: 'done' })
    expect(await again.sessions.history('room', 10_000)).toHaveLength(2 * (acknowledged.length + 1))
    expect(await again.check()).toEqual([])
    await again.close()
    await store.close()
  } finally {
    execFileSync('umount', [disk])
  }
})

test.each(['24.6.0', '22.19.0'])('Node %s gets a sentence, and no file is created', (version) => {
  const file = join(folder, 'sluice.db')
  const own = Object.getOwnPropertyDescriptor(process.versions, 'node') ?? {}
  Object.defineProperty(process.versions, 'node', { ...own, value: version })
  try {
    expect(() => open(file)).toThrow(`The store does not open: this is Node ${version}; Sluice needs Node 24.7 or newer.`)
  } finally {
    Object.defineProperty(process.versions, 'node', own)
  }
  expect(existsSync(file)).toBe(false)
})
