/** The parts of a build besides its bundle, in the folders of the three shipped profiles. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { environment, ROOT } from '../daemons/bundle.ts'

const PROFILES = ['minimal', 'standard', 'full']
const dist = (profile: string) => join(ROOT, 'dist', profile)
const read = (profile: string, file: string) => readFileSync(join(dist(profile), file), 'utf8')
const readJson = (profile: string, file: string) => JSON.parse(read(profile, file))
const sha256 = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')
const script = <Module>(name: string) => import(join(ROOT, 'scripts/artefact', name)) as Promise<Module>

interface Component {
  readonly purl: string
  readonly scope: string
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  readonly licenses?: readonly { readonly license?: { readonly id: string }; readonly expression?: string }[]
}
const componentsOf = (profile: string, scope: string): Component[] =>
  readJson(profile, 'sbom.cdx.json').components.filter((one: Component) => one.scope === scope)
const licenceOf = ({ licenses }: Component) => licenses?.[0]?.license?.id ?? licenses?.[0]?.expression

test.each(PROFILES)('the checksums of %s cover every file of the build', (profile) => {
  const sums = read(profile, 'SHA256SUMS').trim().split('\n')
  expect(sums.filter((line) => sha256(join(dist(profile), line.slice(66))) !== line.slice(0, 64))).toEqual([])
  const replaced = existsSync(join(dist(profile), 'replaced.json')) ? Object.keys(readJson(profile, 'replaced.json')) : []
  const others = ['SHA256SUMS', 'replaced.json', ...replaced]
  const files = readdirSync(dist(profile), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(dist(profile), join(parentPath, name)))
    .filter((name) => !others.includes(name) && !name.startsWith('node_modules/'))
  expect(sums.map((line) => line.slice(66))).toEqual(files.toSorted())
})

test.each(PROFILES)('%s contains packages under permissive licences only, and their notices', async (profile) => {
  const { isPermissive } = await script<{ isPermissive(expression?: string): boolean }>('licences.mjs')
  const bundled = componentsOf(profile, 'required')
  const licences = bundled.map((one) => [decodeURIComponent(one.purl.slice('pkg:npm/'.length)), licenceOf(one)] as const)
  expect(licences.length).toBeGreaterThan(10)
  expect(licences.filter(([, licence]) => !isPermissive(licence))).toEqual([])
  const notices = read(profile, 'THIRD-PARTY-NOTICES.txt')
  for (const [name, licence] of licences) expect(notices).toContain(`\n${name} (${licence})\n`)
  // The report counts the bytes of each package, so it knows every package that is in the bundle.
  const counted: { package: string; startBytes: number; laterBytes: number }[] = readJson(profile, 'bundle-report.json').packages
  const others = counted.filter((row) => row.startBytes + row.laterBytes > 0 && !/^(?:@sluice\/|profile$)/.test(row.package))
  for (const row of others) expect(licences.map(([name]) => name.slice(0, name.lastIndexOf('@')))).toContain(row.package)
})

// A command that imports one value through the index of a large package loads whatever else that index offers.
test('commands that ask the daemon load little besides the profile', () => {
  const files = read('full', 'SHA256SUMS')
    .trim()
    .split('\n')
    .map((line) => line.slice(66))
  /** Returns the file of the bundle with this name, and what it imports. */
  const loadedBy = (name: string): ReadonlySet<string> => {
    const found = new Set(files.filter((file) => new RegExp(`^${name}-[A-Z0-9]{8}\\.mjs$`).test(file)))
    expect(found.size, name).toBe(1)
    for (const file of found)
      for (const [, imported = ''] of read('full', file).matchAll(/\bimport\s*(?:\{[^}]*\}\s*from\s*)?"\.\/([\w.-]+\.mjs)"/g))
        found.add(imported)
    return found
  }
  const profile = loadedBy('full')
  expect(profile.size).toBeGreaterThan(5)
  for (const command of ['status', 'logs', 'pair', 'turns', 'sessions', 'approvals', 'people', 'rooms', 'limits', 'inbox', 'outbox']) {
    const own = [...loadedBy(command)].filter((file) => !profile.has(file))
    const bytes = own.reduce((sum, file) => sum + statSync(join(dist('full'), file)).size, 0)
    expect(bytes, command).toBeLessThan(40_000)
  }
})

test('copyleft and unknown licences are not permissive', async () => {
  const { isPermissive } = await script<{ isPermissive(expression?: string): boolean }>('licences.mjs')
  for (const licence of ['MIT', '(MIT OR GPL-3.0-only)', 'GPL-2.0-only OR MIT', 'MIT AND (Apache-2.0 OR LGPL-3.0-only)'])
    expect(isPermissive(licence), licence).toBe(true)
  for (const licence of [
    ...['GPL-3.0-only', 'AGPL-3.0', 'MPL-2.0', 'MIT AND LGPL-2.1-only', '(MIT', 'MIT)', 'MIT GPL-3.0-only'],
    ...['SEE LICENSE IN x', 'UNLICENSED', 'Apache-2.0 WITH Commons-Clause', '', undefined],
  ])
    expect(isPermissive(licence), licence).toBe(false)
})

test.each(PROFILES)('the bill of materials of %s names each dependency and its hash', (profile) => {
  const { components, dependencies, metadata } = readJson(profile, 'sbom.cdx.json')
  const refs = new Set([metadata.component['bom-ref'], ...components.map((one: Component) => one.purl)])
  expect(refs.size).toBe(components.length + 1)
  for (const { ref, dependsOn } of dependencies) expect([ref, ...dependsOn].filter((one) => !refs.has(one))).toEqual([])
  // Everything is reached from Sluice itself, and only a copy inside another package has no hash in the lockfile.
  const reached = new Set<string>()
  const visit = (ref: string) => {
    if (reached.has(ref)) return
    reached.add(ref)
    for (const next of dependencies.find((one: { ref: string }) => one.ref === ref)?.dependsOn ?? []) visit(next)
  }
  visit(metadata.component['bom-ref'])
  expect([...refs].filter((ref) => !reached.has(ref))).toEqual([])
  const unhashed = components.filter(({ hashes }: Component) => !hashes).map(({ purl }: Component) => purl.replace(/@[^@]*$/, ''))
  expect(unhashed.filter((purl: string) => purl !== 'pkg:npm/pdfjs-dist')).toEqual([])
})

test('the manifests of npm pin the optional packages that the bundle imports', () => {
  const { peerDependencies, peerDependenciesMeta, allowScripts } = readJson('full', 'package.json')
  expect(Object.keys(peerDependencies)).toEqual(['i2c-bus', 'koffi', 'node-hid', 'playwright-core', 'serialport', 'spi-device', 'usb'])
  expect(Object.keys(peerDependenciesMeta)).toEqual(Object.keys(peerDependencies))
  expect(allowScripts).toEqual({
    '@serialport/bindings-cpp': false,
    'i2c-bus': true,
    koffi: false,
    'node-hid': false,
    'spi-device': true,
    usb: false,
  })
  const { packages } = readJson('full', 'npm-shrinkwrap.json')
  for (const [name, version] of Object.entries(peerDependencies)) {
    expect(version).toMatch(/^\d+\.\d+\.\d+$/)
    expect(packages[`node_modules/${name}`]).toMatchObject({ version, integrity: expect.stringMatching(/^sha512-/), optional: true })
  }
  // Install scripts run programs of dependencies, and npm links only the programs that the lockfile names.
  expect(packages['node_modules/node-gyp-build'].bin).toHaveProperty('node-gyp-build')
  expect(readJson('minimal', 'package.json')).not.toHaveProperty('peerDependencies')
  expect(Object.keys(readJson('minimal', 'npm-shrinkwrap.json').packages)).toEqual([''])
})

test('two versions of a package are laid out so that each dependent finds its own', async () => {
  type Locked = { version: string; dependencies: Record<string, string>; optionalDependencies: Record<string, string> }
  const { layOut } = await script<{
    layOut(roots: Record<string, string>, describe: (name: string, version: string) => Locked): Map<string, Locked>
  }>('locked-packages.mjs')
  const locked: Record<string, Record<string, string>> = { 'a@1': { c: '1' }, 'b@1': { c: '2' }, 'c@2': { d: '1' }, 'd@1': { c: '1' } }
  const tree = layOut({ a: '1', b: '1' }, (name, version) => ({
    version,
    dependencies: locked[`${name}@${version}`] ?? {},
    optionalDependencies: {},
  }))
  expect([...tree].map(([path, { version }]) => `${path}@${version}`)).toEqual([
    ...['node_modules/a@1', 'node_modules/b@1', 'node_modules/b/node_modules/c@2', 'node_modules/c@1', 'node_modules/d@1'],
  ])
})

test('the program starts with the right Node, and says so with an older one', () => {
  const start = (...args: string[]) => spawnSync(process.execPath, args, { encoding: 'utf8', env: environment() })
  const program = join(dist('minimal'), 'sluice')
  expect(start(program, '--version').stdout.trim().split(' ').slice(0, 2)).toEqual(['sluice', readJson('minimal', 'package.json').version])
  for (const version of ['18.1.0', '24.6.1']) {
    const old = `Object.defineProperty(process.versions, 'node', { value: '${version}' }); require(${JSON.stringify(program)})`
    expect(start('-e', old)).toMatchObject({ status: 1, stderr: `sluice: this is Node ${version}; Sluice needs Node 24.7 or newer\n` })
  }
})

test('the manual page and the completions have the commands of the build', () => {
  expect(read('full', 'sluice.1')).toContain('\nsluice hardware discover\n')
  expect(read('minimal', 'sluice.1')).not.toContain('hardware discover')
  expect(read('minimal', 'sluice.1')).toContain('\nsluice config set')
  expect(read('minimal', 'sluice.1')).toMatch(/^[\0-\x7f]*$/)
  for (const file of ['sluice.bash', 'sluice.zsh', 'sluice.fish']) expect(read('minimal', file)).toContain('completion')
})

test('a build packs to the same archives each time', async () => {
  const { packBuild } = await script<{ packBuild(folder: string, target: string): Promise<string[]> }>('pack-build.mjs')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pack-'))
  try {
    const pack = async (name: string) => (await packBuild(dist('minimal'), join(folder, name, 'minimal'))).map(sha256)
    const first = await pack('first')
    expect(await pack('second')).toEqual(first)
    expect(await pack('first')).toEqual(first)
    const { version } = readJson('minimal', 'package.json')
    const names = [`sluice-${version}.tgz`, `sluice-${version}-minimal.tar.gz`]
    const packed = join(folder, 'first', 'minimal')
    expect(readFileSync(join(packed, 'SHA256SUMS'), 'utf8')).toBe(
      names
        .toSorted()
        .map((name) => `${sha256(join(packed, name))}  ${name}\n`)
        .join(''),
    )
    expect(readFileSync(join(packed, names[1] ?? '')).length).toBeLessThan(3_000_000)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
