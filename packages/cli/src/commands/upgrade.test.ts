/** `sluice upgrade` on the data directory of release 0.1.0, and on the folder of an installation. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { copyFirstRelease } from '@sluice/qa/first-release'
import { afterEach, expect, test, vi } from 'vitest'
import { always } from '../../../../profiles/always.ts'
import { previousProgram } from './upgrade.ts'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean()
})

function firstRelease() {
  const release = copyFirstRelease()
  cleanups.push(release.dispose)
  const run = sluiceWith(always)
  return { dataDir: release.dataDir, sluice: (...argv: string[]) => run(...argv, '--data-dir', release.dataDir) }
}

test('the check tells the change of the database before it happens, and the way back undoes it once', async () => {
  const { dataDir, sluice } = firstRelease()
  const before = JSON.parse((await sluice('upgrade', '--check', '--json')).out)
  expect(before).toMatchObject({ ok: true, running: null, schema: { from: expect.any(Number), to: expect.any(Number) } })
  expect(before.schema.from).toBeLessThan(before.schema.to)
  expect((await sluice('upgrade', '--check')).out).toMatch(
    new RegExp(`ok +database +its form changes from ${before.schema.from} to ${before.schema.to}`),
  )
  expect(JSON.parse((await sluice('upgrade', '--check', '--json')).out).schema.from).toBe(before.schema.from)

  // Any command that opens the store upgrades it.
  expect((await sluice('memory', 'list')).code).toBe(0)
  expect(JSON.parse((await sluice('upgrade', '--check', '--json')).out).schema.from).toBe(before.schema.to)

  const { code, out } = await sluice('upgrade', '--rollback', '--json')
  const back = JSON.parse(out)
  expect([code, back.schema, back.program]).toEqual([0, before.schema.from, null])
  expect(JSON.parse((await sluice('upgrade', '--check', '--json')).out).schema.from).toBe(before.schema.from)
  expect(existsSync(join(back.newer, 'sluice.db'))).toBe(true)
  expect(await sluice('upgrade', '--rollback')).toMatchObject({ code: 1, err: expect.stringContaining('There is no copy from before') })
  expect(existsSync(join(dataDir, 'sluice.db'))).toBe(true)

  // A copy of a still earlier upgrade is not gone back to by a second call.
  const earlier = join(dataDir, `sluice.db.before-schema-${before.schema.from}`)
  copyFileSync(join(dataDir, 'sluice.db'), earlier)
  setForm(earlier, before.schema.from - 1)
  const again = await sluice('upgrade', '--rollback')
  expect(again).toMatchObject({ code: 1, err: expect.stringContaining('has been put back from form') })
  expect(again.err).toContain(earlier)
  rmSync(earlier)

  // Another upgrade can be undone again.
  expect((await sluice('memory', 'list')).code).toBe(0)
  expect(JSON.parse((await sluice('upgrade', '--rollback', '--json')).out).schema).toBe(before.schema.from)
})

function setForm(file: string, form: number): void {
  const db = new DatabaseSync(file)
  db.exec(`PRAGMA user_version = ${form}`)
  db.close()
}

test('the way back refuses a copy that the last upgrade has not made, and changes nothing', async () => {
  const { dataDir, sluice } = firstRelease()
  expect((await sluice('memory', 'list')).code).toBe(0)
  const { from: form } = JSON.parse((await sluice('upgrade', '--check', '--json')).out).schema
  const file = join(dataDir, 'sluice.db')
  const copy = `${file}.before-schema-${form}`
  const notOfLast = async () => {
    const names = readdirSync(dataDir).toSorted()
    expect(await sluice('upgrade', '--rollback')).toMatchObject({ code: 1, err: expect.stringContaining('has not made the copy') })
    expect(readdirSync(dataDir).toSorted()).toEqual(names)
  }
  renameSync(copy, `${file}.before-schema-${form - 1}`)
  await notOfLast()
  renameSync(`${file}.before-schema-${form - 1}`, copy)
  setForm(copy, form)
  await notOfLast()
  setForm(copy, form - 1)
  await notOfLast()
})

test('the database that is left is complete without its log', async () => {
  const { dataDir, sluice } = firstRelease()
  expect((await sluice('memory', 'list')).code).toBe(0)
  const file = join(dataDir, 'sluice.db')
  const crashed = join(dataDir, 'crashed')
  mkdirSync(crashed)
  const db = new DatabaseSync(file)
  db.exec('PRAGMA wal_autocheckpoint = 0; CREATE TABLE only_in_log (id INTEGER)')
  for (const suffix of ['', '-wal']) copyFileSync(file + suffix, join(crashed, `sluice.db${suffix}`))
  db.close()
  for (const suffix of ['', '-wal']) copyFileSync(join(crashed, `sluice.db${suffix}`), file + suffix)
  const { newer } = JSON.parse((await sluice('upgrade', '--rollback', '--json')).out)
  expect(readdirSync(newer).filter((name) => /-(?:wal|shm)$/.test(name))).toEqual([])
  const left = new DatabaseSync(join(newer, 'sluice.db'), { readOnly: true })
  cleanups.push(() => left.close())
  expect(left.prepare('SELECT count(*) AS rows FROM only_in_log').get()).toEqual({ rows: 0 })
})

test('the way back says what to do with PostgreSQL', async () => {
  const { dataDir, sluice } = firstRelease()
  expect((await sluice('memory', 'list')).code).toBe(0)
  writeFileSync(join(dataDir, 'config.toml'), '[store]\nbackend = "postgres"\nurl = "postgres://ada@db.invalid/sluice"\n')
  expect(await sluice('upgrade', '--rollback')).toMatchObject({ code: 1, err: expect.stringMatching(/PostgreSQL.*restore the backup/) })
  expect(readdirSync(dataDir).filter((name) => name.startsWith('after-upgrade-'))).toEqual([])
})

test('the check fails for a configuration that this program refuses', async () => {
  const { dataDir, sluice } = firstRelease()
  writeFileSync(join(dataDir, 'config.toml'), '[gateway]\nport = "x"\n')
  expect(await sluice('upgrade', '--check')).toMatchObject({
    code: 1,
    out: expect.stringMatching(/fail +configuration +.*`gateway\.port`/),
  })
})

test('one of the two must be chosen', async () => {
  const { sluice } = firstRelease()
  for (const args of [[], ['--check', '--rollback']])
    expect(await sluice('upgrade', ...args)).toMatchObject({ code: 2, err: expect.stringContaining('choose --check or --rollback') })
})

test('the build before becomes the installed one, once', () => {
  const library = mkdtempSync(join(tmpdir(), 'sluice-library-'))
  cleanups.push(() => rmSync(library, { recursive: true }))
  const [old, now] = ['0.1.0-full-aa', '0.2.0-full-bb'].map((name) => join(library, 'builds', name))
  for (const build of [old, now] as string[]) {
    mkdirSync(build, { recursive: true })
    writeFileSync(join(build, 'package.json'), JSON.stringify({ version: basename(build).slice(0, 5) }))
    writeFileSync(join(build, 'sluice.mjs'), '')
  }
  symlinkSync(now ?? '', join(library, 'current'))
  const state = join(library, 'installed.json')
  writeFileSync(state, JSON.stringify({ version: '0.2.0', profile: 'full', build: now, previous: old, node: '/usr/bin/node' }))
  const entry = join(library, 'current/sluice.mjs')
  const first = previousProgram(entry)
  expect(first?.build).toBe(old)
  // Finding it changes nothing.
  expect(readlinkSync(join(library, 'current'))).toBe(now)
  first?.install()
  expect(readlinkSync(join(library, 'current'))).toBe(old)
  expect(JSON.parse(readFileSync(state, 'utf8'))).toEqual({
    version: '0.1.0',
    profile: 'full',
    build: old,
    previous: now,
    node: '/usr/bin/node',
    wentBack: true,
  })
  expect(() => previousProgram(entry)).toThrow(/the way back has been taken already/)
  // The installer of a release does this.
  rmSync(join(library, 'current'))
  symlinkSync(now ?? '', join(library, 'current'))
  writeFileSync(state, JSON.stringify({ version: '0.2.0', profile: 'full', build: now, previous: old, node: '/usr/bin/node' }))
  rmSync(join(old ?? '', 'sluice.mjs'))
  expect(() => previousProgram(entry)).toThrow(/0\.1\.0-full-aa, is not complete, so the database stays as it is/)
  rmSync(old ?? '', { recursive: true })
  expect(() => previousProgram(entry)).toThrow(/is not complete/)
  expect(previousProgram('/nowhere/sluice.mjs')).toBeNull()
})

test('a program before this one that can go on with the database becomes the installed one, and the database stays as it is', async () => {
  const { dataDir, sluice } = firstRelease()
  expect((await sluice('memory', 'list')).code).toBe(0)
  const { from: form } = JSON.parse((await sluice('upgrade', '--check', '--json')).out).schema
  const { library, old } = installation(form)
  const names = readdirSync(dataDir).toSorted()
  expect(names).toContain(`sluice.db.before-schema-${form}`)

  const { code, out } = await runAs(library, () => sluice('upgrade', '--rollback', '--json'))
  expect([code, JSON.parse(out)]).toEqual([0, { schema: form, copied_at: null, newer: null, program: old }])
  expect(readdirSync(dataDir).toSorted()).toEqual(names)
  expect(readlinkSync(join(library, 'current'))).toBe(old)
  expect(await runAs(library, () => sluice('upgrade', '--rollback'))).toMatchObject({
    code: 1,
    err: expect.stringContaining('taken already'),
  })
  expect(readdirSync(dataDir).toSorted()).toEqual(names)
})

test.each([
  ['knows an older form only', (form: number) => form - 1],
  ['has no check of upgrades', () => undefined],
])('a program before this one that %s becomes the installed one with the copy', async (_, known) => {
  const { dataDir, sluice } = firstRelease()
  expect((await sluice('memory', 'list')).code).toBe(0)
  const { from: form } = JSON.parse((await sluice('upgrade', '--check', '--json')).out).schema
  const { library, old } = installation(known(form))
  const { out } = await runAs(library, () => sluice('upgrade', '--rollback', '--json'))
  expect(JSON.parse(out)).toMatchObject({ copied_at: expect.any(String), newer: expect.any(String), program: old })
  expect(JSON.parse((await sluice('upgrade', '--check', '--json')).out).schema.from).toBeLessThan(form)
  expect(readdirSync(dataDir).some((name) => name.startsWith('after-upgrade-'))).toBe(true)
})

test('a program before this one that knows a newer form goes on with the database, too', async () => {
  const { dataDir, sluice } = firstRelease()
  expect((await sluice('memory', 'list')).code).toBe(0)
  const { from: form } = JSON.parse((await sluice('upgrade', '--check', '--json')).out).schema
  const { library, old } = installation(form + 1)
  const names = readdirSync(dataDir).toSorted()
  const { out } = await runAs(library, () => sluice('upgrade', '--rollback', '--json'))
  expect(JSON.parse(out)).toEqual({ schema: form, copied_at: null, newer: null, program: old })
  expect(readdirSync(dataDir).toSorted()).toEqual(names)
})

test('the way back that is interrupted while the program before this one is asked changes nothing', async () => {
  const { dataDir, sluice } = firstRelease()
  expect((await sluice('memory', 'list')).code).toBe(0)
  const { library, old } = installation(undefined)
  const asked = join(library, 'asked')
  writeFileSync(
    join(old, 'sluice.mjs'),
    `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(asked)}, '')\nsetInterval(() => {}, 1000)`,
  )
  const names = readdirSync(dataDir).toSorted()
  const current = readlinkSync(join(library, 'current'))
  const ended = runAs(library, () => sluice('upgrade', '--rollback'))
  await vi.waitFor(() => expect(existsSync(asked)).toBe(true), 20_000)
  process.emit('SIGINT')
  expect(await ended).toMatchObject({ code: 1, err: expect.stringContaining('Nothing has changed') })
  expect(readdirSync(dataDir).toSorted()).toEqual(names)
  expect(readlinkSync(join(library, 'current'))).toBe(current)
})

/** Writes an installation of two builds. The earlier one answers the check of an upgrade for databases of one form, or fails as one without this command. */
function installation(knownForm: number | undefined) {
  const library = mkdtempSync(join(tmpdir(), 'sluice-library-'))
  cleanups.push(() => rmSync(library, { recursive: true }))
  const [old, now] = ['0.2.0-full-aa', '0.2.1-full-bb'].map((name) => join(library, 'builds', name)) as [string, string]
  for (const build of [old, now]) {
    mkdirSync(build, { recursive: true })
    writeFileSync(join(build, 'package.json'), JSON.stringify({ version: basename(build).slice(0, 5) }))
    writeFileSync(join(build, 'sluice.mjs'), knownForm === undefined ? 'process.exit(2)' : checkOf(knownForm))
  }
  symlinkSync(now, join(library, 'current'))
  writeFileSync(join(library, 'installed.json'), JSON.stringify({ version: '0.2.1', build: now, previous: old, node: process.execPath }))
  return { library, old }
}

/** Returns a program that answers `upgrade --check --json --data-dir <folder>` as a release does that knows one form of databases. */
const checkOf = (to: number): string => `
  import { DatabaseSync } from 'node:sqlite'
  const folder = process.argv[process.argv.indexOf('--data-dir') + 1]
  if (!['upgrade', '--check', '--json'].every((word) => process.argv.includes(word))) process.exit(2)
  const from = new DatabaseSync(folder + '/sluice.db', { readOnly: true }).prepare('PRAGMA user_version').get().user_version
  console.log(JSON.stringify({ ok: from <= ${to}, schema: { from, to: ${to} } }))
  process.exitCode = from <= ${to} ? 0 : 1
`

/** Runs a command as the installed program of a library. */
async function runAs<Result>(library: string, command: () => Promise<Result>): Promise<Result> {
  const [, entry = ''] = process.argv
  process.argv[1] = join(library, 'current', 'sluice.mjs')
  try {
    return await command()
  } finally {
    process.argv[1] = entry
  }
}
