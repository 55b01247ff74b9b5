import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { piped, sluiceWith } from '@sluice/qa/daemons/run-command'
import { openStore } from '@sluice/store'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, expect, test } from 'vitest'

const TIMEOUT = { timeout: 60_000 }
let dataDir: string
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'backup-command-'))
  await openStore({ file: join(dataDir, 'sluice.db'), clock: testClock(), log: testHost().log }).close()
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const sluice = (...args: string[]) => sluiceWith([])(...args, '--data-dir', dataDir)
const record = () => JSON.parse(readFileSync(join(dataDir, 'backup.json'), 'utf8'))

test('a backup is written to the given file and noted in the data directory', TIMEOUT, async () => {
  const file = join(dataDir, 'mine.tar')
  const { code, out } = await sluice('backup', file)
  expect(code).toBe(0)
  expect(out).toMatch(/mine\.tar: \d+\.\d MB, 2 files, verified, not encrypted, without secrets\n/)
  expect(record()).toMatchObject({ last: { file, encrypted: false, with_secrets: false }, failure: null })
  const again = await sluice('backup', file)
  expect([again.code, again.err]).toEqual([1, expect.stringContaining('exists already')])
  expect(record()).toMatchObject({ last: { file }, failure: null })
  const nowhere = await sluice('backup', join(dataDir, 'missing', 'mine.tar'))
  expect([nowhere.code, nowhere.err]).toEqual([1, expect.stringContaining('cannot be written')])
  expect(record()).toMatchObject({ last: { file }, failure: { error: expect.stringContaining('cannot be written') } })
})

test('the command refuses a name without the ending of a backup, and names the command that checks a backup', TIMEOUT, async () => {
  const { code, err } = await sluice('backup', 'check')
  expect([code, err]).toEqual([2, expect.stringContaining("'check' does not; to check a backup, use 'sluice restore --check <file>'")])
  expect(readdirSync(dataDir)).not.toContain('backup.json')
})

test('without a file, it goes to the folder of the configuration, which keeps the newest ones', TIMEOUT, async () => {
  writeFileSync(join(dataDir, 'config.toml'), '[backup]\nfolder = "kept"\nkeep = 2\n')
  const files: string[] = []
  for (let round = 0; round < 3; round++) files.push(JSON.parse((await sluice('backup', '--json')).out).file)
  expect(readdirSync(join(dataDir, 'kept')).map((name) => join(dataDir, 'kept', name))).toEqual(files.slice(1).toSorted())
})

test('the passphrase comes from a file or the environment', TIMEOUT, async () => {
  const passphraseFile = join(dataDir, 'passphrase')
  writeFileSync(passphraseFile, 'open sesame\nanother line\n')
  const file = join(dataDir, 'mine.tar.age')
  expect(JSON.parse((await sluice('backup', file, '--passphrase-file', passphraseFile, '--json')).out)).toMatchObject({ encrypted: true })
  expect(readFileSync(file, 'latin1')).toMatch(/^age-encryption\.org\/v1\n/)
  const missing = await sluice('backup', join(dataDir, 'other.tar.age'), '--encrypt')
  expect([missing.code, missing.err]).toEqual([2, expect.stringContaining('SVC_BACKUP_PASSPHRASE')])
  const env = { SVC_BACKUP_PASSPHRASE: 'open sesame' }
  const given = await sluiceWith([], piped(''), env)('backup', join(dataDir, 'third.tar.age'), '--encrypt', '--data-dir', dataDir)
  expect([given.code, given.out]).toEqual([0, expect.stringContaining('encrypted')])
})

test('a backup is checked and restored, and the replaced data is kept', TIMEOUT, async () => {
  const file = join(dataDir, 'mine.tar')
  writeFileSync(join(dataDir, 'config.toml'), '[gateway]\nport = 4000\n')
  await sluice('backup', file)
  writeFileSync(join(dataDir, 'config.toml'), '[gateway]\nport = 5000\n')
  const checked = await sluice('restore', '--check', file)
  expect([checked.code, checked.out]).toEqual([0, expect.stringMatching(/mine\.tar is sound: written .* 2 files, without secrets\n/)])
  expect(readFileSync(join(dataDir, 'config.toml'), 'utf8')).toContain('5000')
  const restored = await sluice('restore', file, '--json')
  const { old_data } = JSON.parse(restored.out)
  expect(JSON.parse(restored.out)).toMatchObject({ data_dir: dataDir, marked: { messages: 0, replies: 0 }, missing_keys: [] })
  expect(readFileSync(join(dataDir, 'config.toml'), 'utf8')).toContain('4000')
  expect(readFileSync(join(old_data, 'config.toml'), 'utf8')).toContain('5000')
})

test.each([
  ['that is cut off', (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)],
  ['with a changed byte', (bytes: Buffer) => bytes.with(2000, (bytes[2000] ?? 0) ^ 1)],
])('a backup %s is refused, and nothing changes', TIMEOUT, async (_, spoil) => {
  const file = join(dataDir, 'mine.tar')
  await sluice('backup', file)
  writeFileSync(file, spoil(readFileSync(file)))
  writeFileSync(join(dataDir, 'config.toml'), '[gateway]\nport = 5000\n')
  const { code, err } = await sluice('restore', file)
  expect([code, err]).toEqual([2, expect.stringContaining('cannot be used')])
  expect(readFileSync(join(dataDir, 'config.toml'), 'utf8')).toContain('5000')
  expect(readdirSync(dataDir).filter((name) => name.includes('restore'))).toEqual([])
})
