import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { copyFirstRelease } from '@sluice/qa/first-release'
import { testHost } from '@sluice/testkit/host'
import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockDataDir, shareDataDir } from './connection/lock-data-dir.ts'
import { openDataDir } from './open-data-dir.ts'
import { openSecretBox } from './secrets/secret-box.ts'

let dataDir: string
const { clock, log } = testHost()
const open = (newDatabase = false) => openDataDir({ dataDir, clock, log, newDatabase })

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'data-dir-'))
})
afterEach(() => rmSync(dataDir, { recursive: true }))

const inDir = (name: string) => join(dataDir, name)

test('a new directory gets a database and a key, and opens again', async () => {
  await open().close()
  const key = readFileSync(inDir('secret.key'), 'utf8')
  await open().close()
  expect(readFileSync(inDir('secret.key'), 'utf8')).toBe(key)
})

test('a directory without its database is refused until the operator confirms a new one', async () => {
  const store = open()
  await store.turns.finish(turnEnd('t1'))
  await store.close()
  rmSync(inDir('sluice.db'))
  expect(() => open()).toThrow(/sluice\.db is missing, but .*secret\.key shows .* Restore .* sluice daemon --new-database/)
  expect(() => open()).toThrow(expect.objectContaining({ code: 'config_invalid' }))
  expect(existsSync(inDir('sluice.db'))).toBe(false)
  const fresh = open(true)
  expect(await fresh.turns.get('t1')).toBeUndefined()
  await fresh.close()
  await open().close()
})

test('a secret and a configuration may exist before the first start', async () => {
  openSecretBox(dataDir).encrypt('hunter2', 'provider.api_key')
  writeFileSync(inDir('config.toml'), '')
  await open().close()
})

test('a directory of an earlier release without a key opens', async () => {
  await open().close()
  rmSync(inDir('secret.key'))
  await open().close()
  expect(existsSync(inDir('secret.key'))).toBe(false)
})

test('an old database is not upgraded under a running daemon', async () => {
  const release = copyFirstRelease()
  const database = join(release.dataDir, 'sluice.db')
  const version = () => {
    const db = new DatabaseSync(database, { readOnly: true })
    const row = db.prepare('PRAGMA user_version').get()
    db.close()
    return row
  }
  const daemon = lockDataDir(release.dataDir)
  try {
    const old = version()
    const running = expect.objectContaining({
      code: 'conflict',
      message: expect.stringContaining('A daemon of an earlier release is running'),
    })
    expect(() => openDataDir({ dataDir: release.dataDir, clock, log })).toThrow(running)
    expect(version()).toEqual(old)
    expect(readdirSync(release.dataDir).filter((name) => name.includes('before-schema'))).toEqual([])
    daemon.release()
    await openDataDir({ dataDir: release.dataDir, clock, log }).close()
    expect(version()).not.toEqual(old)
    lockDataDir(release.dataDir).release()
  } finally {
    daemon.release()
    release.dispose()
  }
})

test('the daemon upgrades under its own lock, and commands open the result', async () => {
  const release = copyFirstRelease()
  const daemon = lockDataDir(release.dataDir)
  try {
    await openDataDir({ dataDir: release.dataDir, clock, log, lock: daemon }).close()
    await openDataDir({ dataDir: release.dataDir, clock, log }).close()
  } finally {
    daemon.release()
    release.dispose()
  }
})

test('a command upgrades under the lock that it shares, unless another command shares it too', async () => {
  const release = copyFirstRelease()
  const [lock, other] = [shareDataDir(release.dataDir), shareDataDir(release.dataDir)]
  try {
    const open = () => openDataDir({ dataDir: release.dataDir, clock, log, lock })
    expect(open).toThrow(expect.objectContaining({ code: 'conflict', message: expect.stringContaining('Another command uses') }))
    other?.release()
    await open().close()
    expect(() => lockDataDir(release.dataDir)).toThrow()
  } finally {
    lock?.release()
    release.dispose()
  }
})

const isRoot = process.platform === 'linux' && process.getuid?.() === 0
const NOBODY = 65_534

/** Opens and locks the directory as another user. Returns the output, one line for each. */
function openAsOtherUser(): string {
  const script = `
    const { openDataDir } = await import(${JSON.stringify(join(import.meta.dirname, 'open-data-dir.ts'))})
    const { lockDataDir } = await import(${JSON.stringify(join(import.meta.dirname, 'connection/lock-data-dir.ts'))})
    const { systemClock } = await import('@sluice/sdk')
    const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }
    process.setgroups([]); process.setgid(${NOBODY}); process.setuid(${NOBODY})
    for (const open of [() => openDataDir({ dataDir: ${JSON.stringify(dataDir)}, clock: systemClock, log }), () => lockDataDir(${JSON.stringify(dataDir)})])
      try { open(); console.log('opened') } catch (error) { console.log(error.code + ' ' + error.message) }`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    cwd: import.meta.dirname,
  })
  return stdout + stderr
}

test.runIf(isRoot)('the error names a different owner of the directory or the database', async () => {
  await open().close()
  const lines = openAsOtherUser().trim().split('\n')
  expect(lines).toHaveLength(2)
  for (const line of lines)
    expect(line).toMatch(
      new RegExp(`^unavailable .*${dataDir} belongs to user 0, but this process runs as user ${NOBODY}\\. .*chown -R ${NOBODY} `),
    )
  chownSync(dataDir, NOBODY, NOBODY)
  chownSync(inDir('secret.key'), NOBODY, NOBODY)
  expect(openAsOtherUser()).toContain(`${inDir('sluice.db')} belongs to user 0`)
  chownSync(inDir('sluice.db'), NOBODY, NOBODY)
  chmodSync(inDir('sluice.db'), 0o400)
  expect(openAsOtherUser()).toContain(`${inDir('sluice.db')} is not accessible to its owner (mode 400). Run: chmod u+rwX`)
})
