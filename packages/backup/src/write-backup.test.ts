import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { openStore } from '@sluice/store'
import { openSecretBox } from '@sluice/store/secret-box'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readArchive } from './archive.ts'
import { type Backup, type BackupOptions, writeBackup } from './write-backup.ts'

const TIMEOUT = { timeout: 120_000 }

let folder: string
let dataDir: string
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'backup-'))
  dataDir = join(folder, 'data')
  mkdirSync(dataDir)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const file = (): string => join(folder, 'one.tar')
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(dataDir, path)), { recursive: true })
  writeFileSync(join(dataDir, path), text)
}

async function makeDatabase(): Promise<void> {
  const store = openStore({ file: join(dataDir, 'sluice.db'), clock: testClock(), log: testHost().log })
  await store.keyValue('test').set('kept', 'value')
  await store.close()
}

const backup = (options: Partial<BackupOptions> = {}): Promise<Backup> =>
  writeBackup({
    file: file(),
    configFile: join(dataDir, 'config.toml'),
    dataDir,
    features: [],
    env: {},
    version: '1.2.3',
    withSecrets: false,
    isPaced: false,
    ...options,
  })

/** Returns the texts of the files in a backup, and `->` with the target of a link. */
async function contents(): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  await readArchive({
    file: file(),
    passphrase: async () => undefined,
    async take({ path, type, header, chunks }) {
      const parts: Uint8Array[] = []
      for await (const chunk of chunks) parts.push(chunk)
      if (type !== 'directory') found[path] = type === 'symlink' ? `-> ${header.linkname}` : Buffer.concat(parts).toString('latin1')
    },
  })
  return found
}

describe('the contents', () => {
  test('are the database, the configuration and what users made, not what belongs to a process', TIMEOUT, async () => {
    await makeDatabase()
    const long = `workspace/${'deep/'.repeat(60)}${'n'.repeat(120)}.txt`
    write('workspace/notes.md', 'notes')
    write(long, 'long')
    write('workspace/naïve ☃.txt', 'unicode')
    write('skills/a/SKILL.md', 'skill')
    write('daemon.lock', 'lock')
    write('sandbox-userns/x', 'scratch')
    write('sluice.db.before-schema-3', 'copy')
    write('before-restore-1/sluice.db', 'old')
    write('backups/sluice-20200101T000000Z.tar', 'backup')
    write('config.toml', '[log]\nlevel = "error"\n')
    write('config.toml.bak', 'secret')
    symlinkSync('../outside', join(dataDir, 'workspace/link'))
    const { files, warnings, leftOut } = await backup()
    const found = await contents()
    expect(Object.keys(found).toSorted()).toEqual(
      ['config.toml', 'skills/a/SKILL.md', 'sluice.db', long, 'workspace/link', 'workspace/naïve ☃.txt', 'workspace/notes.md'].toSorted(),
    )
    expect(found).toMatchObject({ [long]: 'long', 'workspace/naïve ☃.txt': 'unicode', 'workspace/link': '-> ../outside' })
    expect([files, warnings, leftOut]).toEqual([6, [], []])
  })

  test('leave out what no restore accepts, with a warning, and list the links', TIMEOUT, async () => {
    await makeDatabase()
    write('workspace/notes.md', 'notes')
    symlinkSync('notes.md', join(dataDir, 'workspace/inside'))
    symlinkSync('/usr/bin/python3', join(dataDir, 'workspace/python3'))
    write('workspace/odd\\name', 'x')
    const { warnings } = await backup()
    expect(warnings).toEqual([expect.stringContaining('odd\\name'), expect.stringContaining('workspace/python3 is not in the backup')])
    const { manifest } = await readArchive({ file: file(), passphrase: async () => undefined })
    expect(manifest.links).toEqual([{ path: 'workspace/inside', target: 'notes.md' }])
    // Swapped letters have the checksum of the header.
    writeFileSync(
      file(),
      readFileSync(file(), 'latin1').replace('\0notes.md\0', '\0ontes.md\0').replace('2notes.md\0', '2ontes.md\0'),
      'latin1',
    )
    await expect(contents()).rejects.toThrow('the link workspace/inside is damaged')
  })

  test('have no secret in plain text and no key, unless these are asked for', TIMEOUT, async () => {
    await makeDatabase()
    const box = openSecretBox(dataDir)
    const encrypted = box.encrypt('hidden', 'provider.api_key')
    const config = `[provider]\nkind = "openai"\napi_key = "${encrypted}"\n\n[gateway]\n# kept\nwebhook_secret = "visible"\n\n[channels_config.telegram]\nbot_token = "token"\n`
    write('config.toml', config)
    write('tool-browser/Cookies', 'cookie')
    const { leftOut } = await backup()
    expect(leftOut).toEqual(['gateway.webhook_secret', 'channels_config.telegram'])
    const found = await contents()
    expect(found['config.toml']).toBe(`[provider]\nkind = "openai"\napi_key = "${encrypted}"\n\n[gateway]\n# kept\n\n`)
    expect(Object.keys(found)).not.toEqual(expect.arrayContaining(['secret.key']))
    expect(readFileSync(file(), 'latin1')).not.toMatch(/visible|bot_token|cookie/)
    rmSync(file())
    await backup({ withSecrets: true })
    expect(await contents()).toMatchObject({
      'config.toml': config,
      'secret.key': readFileSync(join(dataDir, 'secret.key'), 'utf8'),
      'tool-browser/Cookies': 'cookie',
    })
  })

  test('a configuration that is not valid stops a backup without secrets', TIMEOUT, async () => {
    await makeDatabase()
    write('config.toml', '[nonsense]\n')
    await expect(backup()).rejects.toMatchObject({ code: 'config_invalid' })
    expect(readdirSync(folder)).toEqual(['data'])
    await backup({ withSecrets: true })
    expect((await contents())['config.toml']).toBe('[nonsense]\n')
  })

  test.skipIf(process.getuid?.() === 0)('a file that cannot be read is left out with a warning', TIMEOUT, async () => {
    await makeDatabase()
    write('workspace/closed', 'x')
    chmodSync(join(dataDir, 'workspace/closed'), 0)
    expect((await backup()).warnings).toEqual([expect.stringContaining('workspace/closed')])
  })
})

describe('the file', () => {
  test('is never replaced, and nothing is left of a backup that fails', TIMEOUT, async () => {
    await expect(backup()).rejects.toMatchObject({ code: 'not_found' })
    await makeDatabase()
    await backup()
    await expect(backup()).rejects.toMatchObject({ code: 'conflict' })
    rmSync(file())
    const signal = AbortSignal.abort()
    await expect(backup({ signal })).rejects.toMatchObject({ code: 'aborted' })
    await expect(backup({ file: join(folder, 'missing', 'one.tar') })).rejects.toMatchObject({ code: 'unavailable' })
    expect(readdirSync(folder)).toEqual(['data'])
  })

  test('of an interrupted backup is removed by the next one', TIMEOUT, async () => {
    await makeDatabase()
    for (const name of ['one.tar.0123abcd.part', 'one.tar.ffffffff.part']) writeFileSync(join(folder, name), 'half')
    utimesSync(join(folder, 'one.tar.0123abcd.part'), 1, 1)
    await backup()
    expect(readdirSync(folder).toSorted()).toEqual(['data', 'one.tar', 'one.tar.ffffffff.part'])
  })

  test('that was changed or cut off anywhere does not verify', TIMEOUT, async () => {
    await makeDatabase()
    write('workspace/notes.md', 'notes')
    await backup()
    const whole = readFileSync(file())
    for (const at of [0, 600, 5000, whole.indexOf('notes\0'), whole.length - 2000]) {
      const changed = Buffer.from(whole)
      changed[at] = (changed[at] ?? 0) ^ 4
      writeFileSync(file(), changed)
      await expect(contents(), `byte ${at}`).rejects.toMatchObject({ code: 'invalid_request' })
    }
    for (const length of [0, 100, 512, 5000, whole.length - 4000]) {
      writeFileSync(file(), whole.subarray(0, length))
      await expect(contents(), `${length} bytes`).rejects.toMatchObject({ code: 'invalid_request' })
    }
  })

  test('of a damaged database is not written', TIMEOUT, async () => {
    await makeDatabase()
    const path = join(dataDir, 'sluice.db')
    const bytes = readFileSync(path)
    bytes.fill(0x5a, 4096 * 3, 4096 * 6)
    writeFileSync(path, bytes)
    await expect(backup()).rejects.toThrow(/damaged|malformed/)
    expect(existsSync(file())).toBe(false)
  })
})
