/** `sluice upgrade` on the data directory of release 0.1.0, and on the folder of an installation. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { copyFirstRelease } from '@sluice/qa/first-release'
import { afterEach, expect, test } from 'vitest'
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

test('the build before becomes the installed one, and can be left again', () => {
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
  expect(previousProgram(join(library, 'current/sluice.mjs'))).toBe(old)
  expect(readlinkSync(join(library, 'current'))).toBe(old)
  expect(JSON.parse(readFileSync(state, 'utf8'))).toEqual({
    version: '0.1.0',
    profile: 'full',
    build: old,
    previous: now,
    node: '/usr/bin/node',
  })
  expect(previousProgram(join(library, 'current/sluice.mjs'))).toBe(now)
  expect(previousProgram('/nowhere/sluice.mjs')).toBeNull()
})
