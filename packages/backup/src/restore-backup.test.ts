import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { sha256Hex } from '@sluice/sdk'
import { lockDataDir, openStore } from '@sluice/store'
import { openSecretBox } from '@sluice/store/secret-box'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { createTarPacker } from 'modern-tar'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { finishRestore, type Journal, writeJournal } from './finish-restore.ts'
import { checkBackup, type Restored, type RestoreOptions, restoreBackup } from './restore-backup.ts'
import { type BackupOptions, writeBackup } from './write-backup.ts'

const TIMEOUT = { timeout: 120_000 }

let folder: string
let dataDir: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'restore-'))
  dataDir = join(folder, 'data')
  file = join(folder, 'one.tar')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(join(dataDir, path)), { recursive: true })
  writeFileSync(join(dataDir, path), text)
}
const read = (path: string): string => readFileSync(join(dataDir, path), 'utf8')

async function setValue(value: string): Promise<void> {
  const store = openStore({ file: join(dataDir, 'sluice.db'), clock: testClock(), log: testHost().log })
  await store.keyValue('test').set('value', value)
  await store.close()
}

async function readValue(): Promise<unknown> {
  const store = openStore({ file: join(dataDir, 'sluice.db'), clock: testClock(), log: testHost().log })
  const value = await store.keyValue('test').get('value')
  await store.close()
  return value
}

const backup = (options: Partial<BackupOptions> = {}) =>
  writeBackup({
    file,
    configFile: join(dataDir, 'config.toml'),
    dataDir,
    features: [],
    env: {},
    version: '1.2.3',
    withSecrets: false,
    isPaced: false,
    ...options,
  })

const restore = (passphrase?: string, options: Partial<RestoreOptions> = {}): Promise<Restored> =>
  restoreBackup({
    file,
    dataDir,
    passphrase: async () => passphrase,
    clock: testClock(1_700_000_000_000),
    log: testHost().log,
    ...options,
  })

/** An installation and its backup; then the installation goes on. */
async function backUpAndGoOn(options: Partial<BackupOptions> = {}): Promise<void> {
  await setValue('then')
  write('config.toml', '[log]\nlevel = "warn"\n')
  write('workspace/notes.md', 'then')
  write('workspace/run.sh', '#!/bin/sh\n')
  symlinkSync('notes.md', join(dataDir, 'workspace/link'))
  openSecretBox(dataDir).encrypt('x', 'y')
  await backup(options)
  await setValue('now')
  write('config.toml', '[log]\nlevel = "error"\n')
  write('workspace/notes.md', 'now')
  write('workspace/new.md', 'now')
  write('skills/new/SKILL.md', 'now')
  write('sluice.db-wal', '')
}

describe('a restore', () => {
  test('brings back the data of the backup and keeps the replaced data', TIMEOUT, async () => {
    await backUpAndGoOn()
    const key = read('secret.key')
    const { aside, manifest, missingKeys } = await restore()
    expect(await readValue()).toBe('then')
    expect(read('config.toml')).toBe('[log]\nlevel = "warn"\n')
    expect(readdirSync(join(dataDir, 'workspace')).toSorted()).toEqual(['link', 'notes.md', 'run.sh'])
    expect([read('workspace/notes.md'), readlinkSync(join(dataDir, 'workspace/link'))]).toEqual(['then', 'notes.md'])
    expect(existsSync(join(dataDir, 'skills'))).toBe(false)
    expect([read('secret.key'), missingKeys]).toEqual([key, []])
    expect(manifest).toMatchObject({ version: '1.2.3', with_secrets: false })
    expect(readdirSync(aside ?? '').toSorted()).toEqual(expect.arrayContaining(['config.toml', 'skills', 'sluice.db', 'workspace']))
    expect(readFileSync(join(aside ?? '', 'workspace/new.md'), 'utf8')).toBe('now')
    expect(readdirSync(dataDir).filter((name) => name.startsWith('.') || name === 'restore.json')).toEqual([])
  })

  test('needs no data directory, and says which key is missing', TIMEOUT, async () => {
    await backUpAndGoOn()
    rmSync(dataDir, { recursive: true })
    const { aside, missingKeys } = await restore()
    expect(await readValue()).toBe('then')
    expect([aside, missingKeys]).toEqual([undefined, [expect.stringMatching(/^[0-9a-f]{8}$/)]])
    expect(statSync(join(dataDir, 'config.toml')).mode & 0o777).toBe(0o600)
  })

  test('of a backup with secrets brings the key', TIMEOUT, async () => {
    await setValue('then')
    const encrypted = openSecretBox(dataDir).encrypt('hidden', 'a.path')
    await backup({ withSecrets: true, passphrase: 'open sesame' })
    rmSync(dataDir, { recursive: true })
    await expect(restore()).rejects.toThrow('passphrase')
    expect((await restore('open sesame')).missingKeys).toEqual([])
    expect(openSecretBox(dataDir).decrypt(encrypted, 'a.path')).toBe('hidden')
  })

  test('is refused while a daemon or a command uses the data directory', TIMEOUT, async () => {
    await backUpAndGoOn()
    const lock = lockDataDir(dataDir)
    await expect(restore()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('Stop it') })
    lock.release()
    expect(await readValue()).toBe('now')
  })

  test('of a damaged backup changes nothing', TIMEOUT, async () => {
    await backUpAndGoOn()
    const whole = readFileSync(file)
    const before = readdirSync(dataDir).toSorted()
    for (const at of [700, whole.indexOf('#!/bin/sh'), whole.indexOf('"created_at"') + 16]) {
      const changed = Buffer.from(whole)
      changed[at] = (changed[at] ?? 0) ^ 1
      writeFileSync(file, changed)
      await expect(restore()).rejects.toMatchObject({ code: expect.stringMatching(/invalid_request|unavailable/) })
    }
    writeFileSync(file, whole.subarray(0, whole.length / 2))
    await expect(restore()).rejects.toMatchObject({ code: 'invalid_request' })
    writeFileSync(file, 'something else')
    await expect(restore()).rejects.toMatchObject({ code: 'invalid_request' })
    rmSync(file)
    await expect(restore()).rejects.toMatchObject({ code: 'not_found' })
    expect(readdirSync(dataDir).toSorted()).toEqual(expect.arrayContaining(before.filter((name) => name !== 'sluice.db-wal')))
    expect(readdirSync(dataDir).filter((name) => name.startsWith('.restore'))).toEqual([])
    expect([await readValue(), read('workspace/notes.md')]).toEqual(['now', 'now'])
  })

  test('of a backup in the data directory keeps the backup', TIMEOUT, async () => {
    await setValue('then')
    mkdirSync(join(dataDir, 'backups'))
    file = join(dataDir, 'backups', 'sluice-20200101T000000000Z.tar')
    await backup()
    await setValue('now')
    await restore()
    expect([await readValue(), existsSync(file)]).toEqual(['then', true])
  })
})

type Crafted = readonly [name: string, type: 'file' | 'symlink' | 'link' | 'fifo', content: string | Buffer]

describe('an archive from elsewhere', () => {
  const archive = async (...entries: readonly Crafted[]): Promise<void> => {
    const { readable, controller } = createTarPacker()
    const parts: Uint8Array[] = []
    const collected = (async () => {
      for await (const part of readable) parts.push(part)
    })()
    for (const [name, type, content] of entries) {
      const bytes = type === 'file' ? Buffer.from(content) : Buffer.alloc(0)
      const writer = controller
        .add({ name, type, size: bytes.length, ...(type.endsWith('link') && { linkname: String(content) }) })
        .getWriter()
      if (bytes.length > 0) await writer.write(bytes)
      await writer.close()
    }
    controller.finalize()
    await collected
    writeFileSync(file, Buffer.concat(parts))
  }

  test.each(['../outside', '/tmp/outside', 'a/../../outside', 'a/./b', 'a//b', 'a\\b'])('cannot write to %s', TIMEOUT, async (name) => {
    await archive([name, 'file', 'x'])
    await expect(restore()).rejects.toMatchObject({ code: 'invalid_request' })
    expect(existsSync(join(folder, 'outside'))).toBe(false)
  })

  /** An archive whose hashes are right, as an attacker makes it; like one of release 0.1.0, its manifest does not list links. */
  const sound = async (...entries: readonly Crafted[]): Promise<void> => {
    await setValue('theirs')
    const database = readFileSync(join(dataDir, 'sluice.db'))
    const files = entries.filter(([, type]) => type === 'file').map(([path, , content]) => ({ path, content: Buffer.from(content) }))
    const manifest = JSON.stringify({
      format: 1,
      version: '0.1.0',
      created_at: new Date(0).toISOString(),
      schema: 1,
      with_secrets: false,
      key_ids: [],
      left_out: [],
      files: [...files, { path: 'sluice.db', content: database }].map(({ path, content }) => ({
        path,
        bytes: content.length,
        sha256: sha256Hex(content),
      })),
    })
    await archive(
      ...entries,
      ['sluice.db', 'file', database],
      ['manifest.json', 'file', manifest],
      ['manifest.json.sha256', 'file', sha256Hex(manifest)],
    )
    rmSync(dataDir, { recursive: true })
  }

  test.each<[string, readonly Crafted[], string]>([
    [
      'a link below a link',
      [
        ['x', 'symlink', '..'],
        ['x/planted', 'symlink', 'anything'],
      ],
      'below x, which is a link',
    ],
    [
      'a file below a link',
      [
        ['x', 'symlink', 'workspace'],
        ['x/planted', 'file', 'anything'],
      ],
      'below x, which is a link',
    ],
    ['a link that leads out', [['workspace/x', 'symlink', '../../outside']], 'workspace/x to ../../outside'],
    ['an absolute link', [['workspace/x', 'symlink', '/etc']], 'workspace/x to /etc'],
    ['a hard link', [['x', 'link', '../outside']], 'it has a link'],
    ['a journal', [['restore.json', 'file', '{}']], 'belongs to one machine'],
    [
      'two files of one name',
      [
        ['x', 'file', 'a'],
        ['x', 'file', 'b'],
      ],
      'two entries of the name x',
    ],
  ])('with %s is refused by a check and by a restore, though its hashes are right', TIMEOUT, async (_, entries, why) => {
    await sound(...entries)
    const before = readdirSync(folder).toSorted()
    const refused = { code: 'invalid_request', message: expect.stringContaining(why) }
    await expect(checkBackup({ file, passphrase: async () => undefined })).rejects.toMatchObject(refused)
    await expect(restore()).rejects.toMatchObject(refused)
    expect(readdirSync(dataDir).filter((name) => !name.startsWith('daemon.lock'))).toEqual([])
    rmSync(dataDir, { recursive: true })
    expect(readdirSync(folder).toSorted()).toEqual(before)
  })

  test('of release 0.1.0 is restored without its links that lead out, if that is asked for', TIMEOUT, async () => {
    await sound(['workspace/bin/python3', 'symlink', '/usr/bin/python3'], ['workspace/a', 'symlink', 'b'], ['workspace/b', 'file', 'b'])
    const { skipped } = await restore(undefined, { skipLinks: true })
    expect([skipped, read('workspace/a'), existsSync(join(dataDir, 'workspace/bin'))]).toEqual([['workspace/bin/python3'], 'b', false])
  })

  test('writes nothing through links that are in the target folder already', TIMEOUT, async () => {
    await sound(['workspace/notes.md', 'file', 'theirs'], ['skills/a.md', 'file', 'theirs'])
    const outside = join(folder, 'outside')
    for (const path of [outside, dataDir]) mkdirSync(path)
    symlinkSync(outside, join(dataDir, 'workspace'))
    symlinkSync(join(outside, 'missing'), join(dataDir, 'skills'))
    const { aside = '' } = await restore()
    expect([read('workspace/notes.md'), read('skills/a.md'), readdirSync(outside)]).toEqual(['theirs', 'theirs', []])
    expect([readlinkSync(join(aside, 'workspace')), readlinkSync(join(aside, 'skills'))]).toEqual([outside, join(outside, 'missing')])
  })

  test('cannot write through a link', TIMEOUT, async () => {
    await archive(['a', 'symlink', folder], ['a/outside', 'file', 'x'])
    await expect(restore()).rejects.toMatchObject({ code: 'invalid_request' })
    expect(existsSync(join(folder, 'outside'))).toBe(false)
  })

  test('cannot make a device', TIMEOUT, async () => {
    await archive(['a', 'fifo', ''])
    await expect(restore()).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

test('a restore that is interrupted between any two moves is finished by the next command', TIMEOUT, async () => {
  const [old, fresh] = [
    ['a', 'b', 'sluice.db'],
    ['b', 'c', 'sluice.db'],
  ]
  const journal: Journal = { staging: '.restore-0', aside: 'before-restore-0', old, fresh }
  const moves = [
    ...old.map((name) => [name, `${journal.aside}/${name}`] as const),
    ...fresh.map((name) => [`${journal.staging}/${name}`, name] as const),
  ]
  for (let done = 0; done <= moves.length; done++) {
    rmSync(dataDir, { recursive: true, force: true })
    for (const name of old) write(name, `old ${name}`)
    for (const name of fresh) write(`${journal.staging}/${name}`, `new ${name}`)
    mkdirSync(join(dataDir, journal.aside))
    writeJournal(dataDir, journal)
    for (const [from, to] of moves.slice(0, done)) renameSync(join(dataDir, from), join(dataDir, to))
    finishRestore(dataDir)
    finishRestore(dataDir)
    expect(
      readdirSync(dataDir)
        .filter((name) => !name.startsWith('daemon.lock'))
        .toSorted(),
      `after ${done} moves`,
    ).toEqual([...fresh, journal.aside].toSorted())
    for (const name of fresh) expect(read(name)).toBe(`new ${name}`)
    for (const name of old) expect(read(`${journal.aside}/${name}`)).toBe(`old ${name}`)
  }
})
