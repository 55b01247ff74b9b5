/** Builds of the sources: the same each time, from any folder, and of every feature. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROWS } from '@sluice/sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { environment, ROOT } from '../daemons/bundle.ts'

const TIMEOUT = { timeout: 600_000 }
const NAME = 'test-build'
const dist = join(ROOT, 'dist', NAME)

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-build-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
  rmSync(dist, { recursive: true, force: true })
})

function node(script: string, args: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const options = ['--summary', '--name', NAME]
  const result = spawnSync(process.execPath, [join(ROOT, 'scripts', script), ...args, ...options], {
    cwd,
    encoding: 'utf8',
    env: environment({ ...env, HOME: process.env.HOME ?? folder }),
  })
  if (result.status !== 0) throw new Error(`${result.stdout}${result.stderr}`)
  return result.stdout
}
const sums = () => readFileSync(join(dist, 'SHA256SUMS'), 'utf8')

test('two builds of the same sources are equal, wherever the caller stands', TIMEOUT, () => {
  node('build.mjs', ['minimal'], ROOT)
  const first = sums()
  rmSync(dist, { recursive: true })
  node('build.mjs', ['minimal'], folder)
  expect(sums()).toBe(first)
})

const buildInBackground = () =>
  spawn(process.execPath, [join(ROOT, 'scripts/build.mjs'), 'minimal', '--summary', '--name', NAME], {
    stdio: 'ignore',
    env: environment(),
  })
/** The temporary folders of builds under way. */
const underWay = () => readdirSync(join(ROOT, 'dist')).filter((name) => name.startsWith(`.${NAME}-`))

test('an interrupted build leaves nothing behind, and the build before it as it was', TIMEOUT, async () => {
  node('build.mjs', ['minimal'], ROOT)
  const before = sums()
  const build = buildInBackground()
  await expect.poll(underWay).toHaveLength(1)
  build.kill('SIGINT')
  expect(await once(build, 'exit')).toEqual([130, null])
  expect([underWay(), sums()]).toEqual([[], before])
})

test('builds at the same time leave one complete build', TIMEOUT, async () => {
  const exits = [buildInBackground(), buildInBackground(), buildInBackground()].map((build) => once(build, 'exit'))
  expect(await Promise.all(exits)).toEqual([
    [0, null],
    [0, null],
    [0, null],
  ])
  execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: dist })
})

test('every feature of this release can be bundled: no package has a licence that is not permissive', TIMEOUT, () => {
  const ids = ROWS.map(([id]) => id)
  node('build.mjs', ['--only', ids.join(',')], ROOT)
  const { components } = JSON.parse(readFileSync(join(dist, 'sbom.cdx.json'), 'utf8'))
  const bundled = components.filter((one: { scope: string }) => one.scope === 'required')
  const licences = bundled.map((one: { purl: string; licenses?: unknown }) => `${one.purl} ${JSON.stringify(one.licenses)}`)
  console.log(licences.join('\n'))
  expect(licences.filter((line: string) => line.endsWith('undefined'))).toEqual([])
  expect(bundled.filter(({ purl }: { purl: string }) => /libsignal|baileys/.test(purl))).toEqual([])
  const shown = JSON.parse(
    execFileSync(process.execPath, [join(dist, 'sluice'), 'features', '--json', '--data-dir', folder], { encoding: 'utf8' }),
  )
  expect(shown.filter(({ compiled }: { compiled: boolean }) => !compiled)).toEqual([])
})

test('a profile file outside the repository is found from the folder of the caller', TIMEOUT, () => {
  writeFileSync(
    join(folder, 'mine.ts'),
    `import { main } from '@sluice/cli'
    import pdf from '@sluice/tool-pdf'
    import { always } from '@sluice/profiles/always.ts'
    await main({ profile: 'mine', features: [...always, pdf] })`,
  )
  const features = () =>
    spawnSync(process.execPath, [join(dist, 'sluice'), 'features', '--json'], {
      encoding: 'utf8',
      env: environment({ SVC_DATA_DIR: folder }),
    })
  const isCompiled = () =>
    JSON.parse(features().stdout).find((row: { feature: string; compiled: boolean }) => row.feature === 'tool-pdf').compiled
  node('bootstrap.mjs', ['build', './mine.ts'], folder, { INIT_CWD: ROOT })
  expect(isCompiled()).toBe(true)
  // npm and pnpm run a script in the root of the repository, and say where the caller stands.
  rmSync(dist, { recursive: true })
  node('bootstrap.mjs', ['build', './mine.ts'], ROOT, { INIT_CWD: folder, npm_lifecycle_event: 'build' })
  expect(isCompiled()).toBe(true)
})
