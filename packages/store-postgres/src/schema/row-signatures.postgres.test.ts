/** A user who can write the database, but has no `secret.key`, changes nothing that nodes trust. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { CLUSTER_ROLES, type Store, type StoreSignOptions, sha256Hex, type UnverifiedRow } from '@sluice/sdk'
import { openRowSigner } from '@sluice/store/row-signer'
import { secretKeyIds } from '@sluice/store/secret-box'
import { beginRotation, endRotation } from '@sluice/store/secret-rotation'
import { testHost } from '@sluice/testkit/host'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { markRecovered } from '../maintenance/mark-recovered.ts'
import { reencrypt } from '../maintenance/secret-rotation.ts'
import { signRows } from '../maintenance/sign-rows.ts'
import { openPostgresStore } from '../open-store.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'
import { SIGNED_SINCE } from './schema.ts'

let server: TestServer
let folder: string
let writer: pg.Client
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
  folder = mkdtempSync(join(tmpdir(), 'signed-rows-'))
  writer = new pg.Client({ connectionString: server.url })
  await writer.connect()
})
afterAll(async () => {
  await writer.end()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

let schemas = 0
let schema: string
const undo: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  schema = `signed_${schemas++}`
  mkdirSync(join(folder, schema))
})
afterEach(async () => {
  while (undo.length > 0) await undo.pop()?.()
})

const settings = () => ({ url: server.url, schema })
const dirOf = (node: string) => join(folder, schema, node)

/** Opens the store as a node with a data directory of its own and the key of the first one. */
async function open(node = 'a'): Promise<Store> {
  const dir = dirOf(node)
  mkdirSync(dir, { recursive: true })
  if (node !== 'a') cpSync(join(dirOf('a'), 'secret.key'), join(dir, 'secret.key'))
  const cluster = { name: 'test', node, roles: CLUSTER_ROLES, version: '1.0.0', url: null }
  const keys = { keyIds: secretKeyIds(dir), signer: openRowSigner(dir) }
  const store = await openPostgresStore({ ...settings(), node, cluster, readers: 1, writers: 1, log: testHost().log, ...keys })
  undo.push(() => store.close())
  return store
}

/** Runs a statement as a user without the key. */
const tamper = async (text: string, ...values: unknown[]) => {
  await writer.query(`SET search_path = ${schema}`)
  return writer.query(text, values)
}

/** Makes the database as an earlier release leaves it: with unsigned rows. */
const asOfEarlierRelease = async () => {
  for (const table of ['config', 'devices', 'pairing_codes', 'one_time_keys', 'key_values']) await tamper(`UPDATE ${table} SET hmac = NULL`)
  await tamper(`DELETE FROM meta WHERE key = 'signed'`)
  await tamper(`UPDATE meta SET value = '1' WHERE key = 'min_reader'`)
  rmSync(join(dirOf('a'), 'signed-rows.json'))
}

const toolsOf = (node = 'a') => {
  const dir = dirOf(node)
  const about = { tls: 'auto', connectMs: 5000, node, clock: systemClock, log: testHost().log } as const
  return { ...settings(), ...about, dataDir: dir, keyIds: secretKeyIds(dir), signer: openRowSigner(dir) }
}

type Decide = StoreSignOptions['decide']
const sign = (decide: Decide = async ({ unverified }) => ({ does: 'sign', rows: unverified }), node = 'a') =>
  signRows(settings(), { ...toolsOf(node), decide })

const survey = async (store: Store) => {
  const { isDemanded, unverified } = (await store.unverifiedRows?.()) ?? { isDemanded: undefined, unverified: [] as UnverifiedRow[] }
  return { isDemanded, rows: unverified.map(({ name, fault }) => [name, fault === null ? 'unsigned' : 'wrong']) }
}

const device = (id: string, token: string) => ({
  id,
  name: `name of ${id} \ud800`,
  role: 'client' as const,
  tokenHash: sha256Hex(token),
  createdAtMs: 1.5,
  expiresAtMs: null,
})

test('a node reads what another one has written, and a new database demands that it is signed', async () => {
  const [a, b] = [await open('a'), await open('b')]
  await a.cluster?.config.replace('[agent]\n', 0, 'cli:ada')
  await a.devices.add(device('phone', 'one'))
  await a.devices.rotate('phone', sha256Hex('two'), 9e15)
  await a.devices.addCode({ hash: 'code', role: 'operator', expiresAtMs: 9e15 }, 5)
  await a.keyValue('sop').set('agreed /x \0', { hash: 'y' })
  const keys = a.cluster?.oneTimeKeys<number>('sign-in', { ttlMs: 60_000, perOwnerMax: 3, allMax: 9 })
  await keys?.add('owner', 'key', 7)
  expect(await survey(b)).toEqual({ isDemanded: true, rows: [] })
  expect((await b.cluster?.config.read())?.text).toBe('[agent]\n')
  expect(await b.devices.findByTokenHash(sha256Hex('two'))).toMatchObject({ id: 'phone', role: 'client', expiresAtMs: 9e15 })
  expect(await b.keyValue('sop').get('agreed /x \0')).toEqual({ hash: 'y' })
  expect(await b.devices.redeemCode('code', { ...device('tablet', 'three') })).toBe('operator')
  expect(await b.cluster?.oneTimeKeys<number>('sign-in', { ttlMs: 1, perOwnerMax: 3, allMax: 9 }).take('owner', 'key')).toBe(7)
})

test('a version of the configuration that no node has written is refused by name, with the cure, and nothing else changes', async () => {
  const store = await open()
  await store.cluster?.config.replace('a = 1\n', 0, 'cli:ada')
  await tamper(`INSERT INTO config (version, text, hash, by_whom) VALUES (2, 'b = 2', 'x', 'cli:ada')`)
  const refusal = { code: 'config_invalid', message: expect.stringMatching(/row config\/2 is refused.*no HMAC.*'sluice cluster sign'/) }
  await expect(store.cluster?.config.read()).rejects.toMatchObject(refusal)
  await tamper(`UPDATE config SET hmac = (SELECT hmac FROM config WHERE version = 1) WHERE version = 2`)
  await expect(store.cluster?.config.read()).rejects.toMatchObject({ message: expect.stringContaining('its HMAC is wrong') })
  await tamper(`UPDATE config SET text = (SELECT text FROM config WHERE version = 1) WHERE version = 2`)
  await expect(store.cluster?.config.read()).rejects.toMatchObject({ message: expect.stringContaining('its HMAC is wrong') })
  expect(await survey(store)).toMatchObject({ rows: [['config/2', 'wrong']] })
})

test('a running node does not take a forged version over, and takes it once an operator has signed it', async () => {
  const store = await open()
  const first = await store.cluster?.config.replace('a = 1\n', 0, 'cli:ada')
  const seen: number[] = []
  const stop = new AbortController()
  undo.push(async () => stop.abort())
  store.cluster?.config.watch(({ version }) => seen.push(version), first?.version ?? 0, stop.signal)
  await tamper(`INSERT INTO config (version, text, hash, by_whom) VALUES (2, 'b = 2', 'x', 'eve')`)
  await expect(store.cluster?.config.read()).rejects.toMatchObject({ code: 'config_invalid' })
  expect(seen).toEqual([])
  await sign()
  await expect.poll(() => seen, { timeout: 10_000 }).toEqual([2])
})

test('an older version of the configuration is refused after a newer one was read, also after a restart', async () => {
  const store = await open()
  await store.cluster?.config.replace('a = 1\n', 0, 'cli:ada')
  await store.cluster?.config.replace('a = 2\n', 1, 'cli:ada')
  await tamper('DELETE FROM config WHERE version = 2')
  const refusal = { code: 'config_invalid', message: expect.stringContaining('version 1, but this machine has read version 2') }
  await expect(store.cluster?.config.read()).rejects.toMatchObject(refusal)
  await store.close()
  const again = await open()
  await expect(again.cluster?.config.read()).rejects.toMatchObject(refusal)
  await tamper('DELETE FROM config')
  await expect(again.cluster?.config.read()).rejects.toMatchObject({ code: 'config_invalid' })
})

test.each([
  ['added', `INSERT INTO devices (id, name, role, token_hash, created_at) VALUES ('own', 'x', 'operator', $1, 1)`],
  ['given another token', `UPDATE devices SET token_hash = $1`],
  ['given another role', `UPDATE devices SET token_hash = $1, role = 'operator'`],
  ['renamed', `UPDATE devices SET id = 'other', token_hash = $1`],
  [
    'copied with its HMAC',
    `INSERT INTO devices (id, name, role, token_hash, created_at, hmac) SELECT 'own', name, 'operator', $1, created_at, hmac FROM devices`,
  ],
])('a device that was %s in the database is not accepted', async (_, text) => {
  const store = await open()
  await store.devices.add(device('phone', 'one'))
  await tamper(text, sha256Hex('own'))
  expect(await store.devices.findByTokenHash(sha256Hex('own'))).toBeUndefined()
  expect(await store.devices.rotate('own', sha256Hex('later'))).toBe(false)
  expect((await store.devices.list()).filter(({ role }) => role === 'operator')).toEqual([])
})

test('the role of a device and the end of a token cannot be changed', async () => {
  const store = await open()
  await store.devices.add({ ...device('phone', 'one'), expiresAtMs: 9e15 })
  await tamper(`UPDATE devices SET role = 'operator'`)
  expect(await store.devices.findByTokenHash(sha256Hex('one'))).toBeUndefined()
  await tamper(`UPDATE devices SET role = 'client'`)
  expect(await store.devices.findByTokenHash(sha256Hex('one'))).toMatchObject({ role: 'client' })
  await tamper('UPDATE devices SET expires_at = NULL')
  expect(await store.devices.findByTokenHash(sha256Hex('one'))).toBeUndefined()
})

test('a pairing code and a sign-in link that were put into the database are worth nothing', async () => {
  const store = await open()
  await tamper(`INSERT INTO pairing_codes (hash, role, expires_at) VALUES ('own', 'operator', 9e15)`)
  expect(await store.devices.redeemCode('own', device('own', 'own'))).toBeUndefined()
  await store.devices.addCode({ hash: 'given', role: 'client', expiresAtMs: 9e15 }, 5)
  await tamper(`UPDATE pairing_codes SET role = 'operator' WHERE hash = 'given'`)
  expect(await store.devices.redeemCode('given', device('own', 'own'))).toBeUndefined()
  await tamper(
    `INSERT INTO one_time_keys (purpose, owner, hash, value_json, expires_at) VALUES ('sign-in', '', $1, '"operator"', 9e15)`,
    sha256Hex('own'),
  )
  const keys = store.cluster?.oneTimeKeys('sign-in', { ttlMs: 60_000, perOwnerMax: 3, allMax: 9 })
  expect(await keys?.take('', 'own')).toBeUndefined()
})

test('an accepted procedure cannot be put, changed or moved in the database', async () => {
  const store = await open()
  const values = store.keyValue('sop')
  await values.set('agreed /a', 'hash of a')
  await values.set('agreed /b', 'hash of b')
  const refusal = { code: 'config_invalid', message: expect.stringContaining('key_values/sop/agreed /a') }
  await tamper(`UPDATE key_values SET value_json = '"own"' WHERE key = $1`, Buffer.from('agreed /a', 'utf16le').swap16())
  await expect(values.get('agreed /a')).rejects.toMatchObject(refusal)
  await expect(values.swap('agreed /a', 'own', 'more')).rejects.toMatchObject(refusal)
  expect(await values.list('agreed ', 9)).toEqual([{ key: 'agreed /b', value: 'hash of b' }])
  await tamper(
    `UPDATE key_values SET (value_json, hmac) = (SELECT value_json, hmac FROM key_values WHERE key = $2) WHERE key = $1`,
    Buffer.from('agreed /a', 'utf16le').swap16(),
    Buffer.from('agreed /b', 'utf16le').swap16(),
  )
  await expect(values.get('agreed /a')).rejects.toMatchObject({ message: expect.stringContaining('its HMAC is wrong') })
  await tamper(`INSERT INTO key_values (owner, key, value_json, hmac) SELECT 'feature:mcp', key, value_json, hmac FROM key_values`)
  expect(await store.keyValue('feature:mcp').list('', 9)).toEqual([])
  await values.set('agreed /a', 'hash of a')
  expect(await values.get('agreed /a')).toBe('hash of a')
})

test('what says that rows are signed can be neither removed nor put back to an earlier time', async () => {
  const store = await open()
  await tamper(`DELETE FROM meta WHERE key = 'signed'`)
  await tamper(`INSERT INTO devices (id, name, role, token_hash, created_at) VALUES ('own', 'x', 'operator', $1, 1)`, sha256Hex('own'))
  await store.close()
  const again = await open()
  expect(await again.devices.findByTokenHash(sha256Hex('own'))).toBeUndefined()
  await tamper(`INSERT INTO meta VALUES ('signed', '{"at_ms":1,"config_version":0,"hmac":"no"}')`)
  await again.close()
  expect(await survey(await open())).toEqual({ isDemanded: true, rows: [['devices/own', 'unsigned']] })
})

test('a database of an earlier release counts as it is until an operator signs it, and forged rows never do', async () => {
  const old = await open()
  await old.cluster?.config.replace('a = 1\n', 0, 'cli:ada')
  await old.devices.add(device('phone', 'one'))
  await old.keyValue('sop').set('agreed /a', 'hash')
  await old.close()
  await asOfEarlierRelease()
  const store = await open()
  expect((await store.cluster?.config.read())?.text).toBe('a = 1\n')
  expect(await store.devices.findByTokenHash(sha256Hex('one'))).toMatchObject({ id: 'phone' })
  expect(await store.keyValue('sop').get('agreed /a')).toBe('hash')
  const unsigned = [
    ['config/1', 'unsigned'],
    ['devices/phone', 'unsigned'],
    ['key_values/sop/agreed /a', 'unsigned'],
  ]
  expect(await survey(store)).toEqual({ isDemanded: false, rows: unsigned })
  // Nothing happens without a yes.
  expect(await sign(async () => undefined)).toBe(false)
  expect(await survey(store)).toEqual({ isDemanded: false, rows: unsigned })
  await tamper(`UPDATE devices SET hmac = '00000000:forged'`)
  expect(await store.devices.findByTokenHash(sha256Hex('one'))).toBeUndefined()
  await tamper('UPDATE devices SET hmac = NULL')
  expect(await sign()).toBe(true)
  await store.cluster?.claimShards()
  await expect.poll(async () => (await survey(store)).isDemanded, { timeout: 10_000 }).toBe(true)
  expect(await survey(store)).toEqual({ isDemanded: true, rows: [] })
  expect(await survey(await open('b'))).toEqual({ isDemanded: true, rows: [] })
  const { rows } = await tamper(`SELECT value FROM meta WHERE key = 'min_reader'`)
  expect(rows).toEqual([{ value: String(SIGNED_SINCE) }])
})

test('changes of an earlier release count as unsigned, not as forged', async () => {
  const old = await open()
  await old.devices.add(device('phone', 'one'))
  await old.keyValue('sop').set('agreed /a', 'hash')
  await old.cluster?.oneTimeKeys('sign-in', { ttlMs: 6e7, perOwnerMax: 3, allMax: 9 }).add('', 'key', 1)
  await tamper(`DELETE FROM meta WHERE key = 'signed'`)
  await old.close()
  rmSync(join(dirOf('a'), 'signed-rows.json'))
  const store = await open()
  expect(await survey(store)).toEqual({ isDemanded: false, rows: [] })
  await tamper('UPDATE devices SET token_hash = $1', sha256Hex('two'))
  await tamper(`UPDATE key_values SET value_json = '"other"'`)
  await tamper(`UPDATE one_time_keys SET value_json = '2'`)
  await tamper('UPDATE devices SET last_seen_at = 5')
  expect(await survey(store)).toMatchObject({
    rows: [
      [expect.any(String), 'unsigned'],
      [expect.any(String), 'unsigned'],
      [expect.any(String), 'unsigned'],
    ],
  })
  expect(await store.devices.findByTokenHash(sha256Hex('two'))).toMatchObject({ id: 'phone' })
  expect(await store.keyValue('sop').get('agreed /a')).toBe('other')
})

test('signing waits for the upgrade of every node', async () => {
  const store = await open()
  await store.cluster?.claimShards()
  await tamper(`INSERT INTO processes (id, node, schema_version) VALUES ('old', 'old-node', ${SIGNED_SINCE - 1})`)
  await expect(sign()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('old-node') })
})

test('an operator signs or removes single rows', async () => {
  const store = await open()
  await store.devices.add(device('phone', 'one'))
  for (const id of ['known', 'own'])
    await tamper(`INSERT INTO devices (id, name, role, token_hash, created_at) VALUES ($1, 'x', 'client', $2, 1)`, id, sha256Hex(id))
  const named =
    (name: string) =>
    async ({ unverified }: { unverified: readonly UnverifiedRow[] }) =>
      unverified.filter((row) => row.name === name)
  await sign(async (shown) => ({ does: 'sign', rows: await named('devices/known')(shown) }))
  expect(await store.devices.findByTokenHash(sha256Hex('known'))).toMatchObject({ id: 'known' })
  expect(await survey(store)).toMatchObject({ rows: [['devices/own', 'unsigned']] })
  await sign(async (shown) => ({ does: 'remove', rows: await named('devices/own')(shown) }))
  expect((await store.devices.list()).map(({ id }) => id)).toEqual(['known', 'phone'])
  expect(await survey(store)).toEqual({ isDemanded: true, rows: [] })
})

test('a row that changes between what an operator sees and the yes is not signed as another one', async () => {
  const store = await open()
  await tamper(`INSERT INTO devices (id, name, role, token_hash, created_at) VALUES ('known', 'x', 'client', $1, 1)`, sha256Hex('known'))
  await sign(async ({ unverified }) => {
    await tamper(`UPDATE devices SET role = 'operator'`)
    return { does: 'sign', rows: unverified }
  })
  expect(await store.devices.findByTokenHash(sha256Hex('known'))).toBeUndefined()
})

test('a rotation of the key signs everything again, and the old key proves nothing any more', async () => {
  const store = await open()
  await store.cluster?.config.replace('a = 1\n', 0, 'cli:ada')
  await store.devices.add(device('phone', 'one'))
  await store.keyValue('sop').set('agreed /a', 'hash')
  await store.close()
  await tamper(
    `INSERT INTO devices (id, name, role, token_hash, created_at, hmac) SELECT 'own', name, role, $1, 1, hmac FROM devices`,
    sha256Hex('own'),
  )
  const dir = dirOf('a')
  const oldId = beginRotation(dir)
  const again = () => reencrypt({ ...toolsOf(), settings: settings(), dataDir: dir, oldId })
  expect((await again()).changed).toBe(4)
  expect((await again()).changed).toBe(0)
  endRotation(dir)
  const after = await open()
  expect(await survey(after)).toEqual({ isDemanded: true, rows: [['devices/own', 'wrong']] })
  expect((await after.cluster?.config.read())?.text).toBe('a = 1\n')
  expect(await after.devices.findByTokenHash(sha256Hex('one'))).toMatchObject({ id: 'phone' })
  expect(await after.keyValue('sop').get('agreed /a')).toBe('hash')
})

test('a recovery to an earlier time brings back an older configuration, which nodes take after the command for it', async () => {
  const store = await open()
  await store.cluster?.config.replace('a = 1\n', 0, 'cli:ada')
  await store.cluster?.config.replace('a = 2\n', 1, 'cli:ada')
  const other = await open('b')
  await other.cluster?.config.read()
  await Promise.all([store.close(), other.close()])
  await tamper('DELETE FROM config WHERE version = 2')
  await markRecovered({ settings: settings(), atMs: 1, nowMs: 2, about: toolsOf() })
  for (const node of ['a', 'b']) {
    const recovered = await open(node)
    expect((await recovered.cluster?.config.read())?.text).toBe('a = 1\n')
    expect(await survey(recovered)).toEqual({ isDemanded: true, rows: [] })
  }
})
