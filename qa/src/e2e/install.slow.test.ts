/** Installs archives of the shipped profiles on this machine, for its user and, as root, for another user. Needs the npm registry. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundle, environment, eventually, ROOT, scratch, startDaemon } from '../daemons/bundle.ts'

const TIMEOUT = { timeout: 600_000 }
/** The id of the user `nobody` of Debian. */
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0

let folder: string
const archives = new Map<string, string>()
const npmPackages = new Map<string, string>()

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-install-')))
  chmodSync(folder, 0o755)
  const { packBuild } = (await import(join(ROOT, 'scripts/artefact/pack-build.mjs'))) as {
    packBuild(folder: string, target: string): Promise<[string, string]>
  }
  for (const profile of ['minimal', 'full']) {
    const [npmPackage, archive] = await packBuild(dirname(bundle(profile)), join(folder, 'packed', profile))
    npmPackages.set(profile, npmPackage)
    mkdirSync(join(folder, profile))
    run('tar', ['-xzf', archive, '-C', join(folder, profile), '--strip-components=1'])
    archives.set(profile, join(folder, profile))
  }
}, 600_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }), 600_000)

interface RunOptions {
  readonly env?: Record<string, string>
  readonly uid?: number
  readonly cwd?: string
}

function run(program: string, args: readonly string[], { env = {}, uid, cwd = '/' }: RunOptions = {}) {
  const owner = uid === undefined ? {} : { uid, gid: uid }
  return spawnSync(program, args, { encoding: 'utf8', cwd, env: environment(env), ...owner })
}

const archive = (profile: string) => archives.get(profile) ?? ''
/** The settings that reach the registry: its address, from the files of the user who runs the tests, and certificates. */
const registry = () => ({
  npm_config_registry: run('npm', ['config', 'get', 'registry'], { env: { HOME: process.env.HOME ?? '' } }).stdout.trim(),
  ...Object.fromEntries(
    ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'CURL_CA_BUNDLE'].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
  ),
})

/** A folder with the given programs, as the PATH of a machine that has nothing else. */
function pathOf(name: string, programs: readonly string[]): string {
  const path = join(folder, name)
  mkdirSync(path)
  for (const program of programs) {
    const found = ['/usr/bin', '/bin', '/usr/local/bin'].map((place) => join(place, program)).find((file) => existsSync(file))
    if (found) symlinkSync(found, join(path, program))
  }
  return path
}

test('installs, upgrades with the native packages, keeps a running daemon alive, and uninstalls', TIMEOUT, async () => {
  const prefix = join(folder, 'a place')
  const program = join(prefix, 'bin/sluice')
  const install = (profile: string, ...args: string[]) => run(join(archive(profile), 'install.sh'), ['--prefix', prefix, ...args])
  expect(install('minimal').stdout).toContain('Installed Sluice')
  expect(run(program, ['agent', '-m', 'hello'], { env: { SVC_DATA_DIR: join(folder, 'data') } }).stdout).toContain('You said: hello')
  expect(install('minimal').stdout).toContain('is already installed')
  expect(readFileSync(join(prefix, 'share/man/man1/sluice.1'), 'utf8')).toContain('.TH SLUICE 1')
  expect(run('bash', ['-n', join(prefix, 'share/bash-completion/completions/sluice')]).status).toBe(0)

  // A module that was installed natively, and a daemon that runs while the next build is installed.
  const [first = ''] = globSync(join(prefix, 'lib/sluice/builds/*'))
  mkdirSync(join(first, 'node_modules/native'), { recursive: true })
  const data = scratch('[gateway]\nrequire_pairing = false\n')
  const daemon = await startDaemon(join(prefix, 'lib/sluice/current'), data.dir)
  try {
    const upgraded = install('full', '--full')
    expect(upgraded.stdout).toContain('Upgraded to Sluice')
    expect(upgraded.stdout).toContain('Restart the daemon')
    // The page is made by a part of the bundle that is loaded now, from the build that has been replaced.
    const page = await eventually(
      async () => (await fetch(`${daemon.url}/api/openapi.json`)).status,
      (status) => status !== 0,
    )
    expect(page).toBe(200)
  } finally {
    daemon.kill('SIGTERM')
    await daemon.exited
    data.dispose()
  }
  expect(run(program, ['features']).stdout).toContain('hardware-boards')
  expect(readdirSync(join(prefix, 'lib/sluice/builds'))).toHaveLength(2)
  expect(install('full', '--uninstall').stdout).toContain('Removed Sluice')
  expect(globSync(join(prefix, '**/*')).filter((path) => /sluice/.test(path.slice(prefix.length)))).toEqual([])
})

test('refuses a damaged archive and a place that belongs to another program', TIMEOUT, () => {
  const damaged = join(folder, 'damaged')
  cpSync(archive('minimal'), damaged, { recursive: true })
  writeFileSync(join(damaged, 'LICENSE'), 'changed')
  const prefix = join(folder, 'refused')
  expect(run(join(damaged, 'install.sh'), ['--prefix', prefix])).toMatchObject({ status: 1, stderr: expect.stringContaining('is damaged') })
  mkdirSync(join(prefix, 'bin'), { recursive: true })
  writeFileSync(join(prefix, 'bin/sluice'), 'another program')
  for (const option of [[], ['--uninstall']]) run(join(archive('minimal'), 'install.sh'), ['--prefix', prefix, ...option])
  expect(readFileSync(join(prefix, 'bin/sluice'), 'utf8')).toBe('another program')
})

test('fetches Node from the npm registry where it is missing, and checks its hash', TIMEOUT, () => {
  const tools = ['sh', 'cat', 'cut', 'sed', 'tr', 'od', 'tar', 'gzip', 'mktemp', 'mkdir', 'rm', 'uname', 'dirname', 'base64', 'sha512sum']
  const PATH = pathOf('bare', [...tools, 'curl', 'wget'])
  const prefix = join(folder, 'bare-prefix')
  const options = { env: { ...registry(), PATH, HOME: join(folder, 'bare-home') } }
  const installed = run(join(archive('minimal'), 'install.sh'), ['--prefix', prefix], options)
  expect(installed.stderr).toMatch(/^install: fetching Node \d+\.\d+\.\d+ from the npm registry\n$/)
  expect(installed.status).toBe(0)
  expect(run(join(prefix, 'bin/sluice'), ['--version'], options).stdout).toMatch(/^sluice \d/)

  const other = join(folder, 'other-hash')
  cpSync(archive('minimal'), other, { recursive: true })
  const runtime = readFileSync(join(other, 'node-runtime.json'), 'utf8')
  writeFileSync(join(other, 'node-runtime.json'), runtime.replaceAll(/sha512-..../g, 'sha512-AAAA'))
  const refused = run(join(other, 'install.sh'), ['--prefix', join(folder, 'never')], options)
  expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('does not have the expected SHA-512') })
  expect(existsSync(join(folder, 'never'))).toBe(false)
})

describe.skipIf(!isRoot)('as root (skipped for other users)', () => {
  test('installs for every user, whatever the umask', TIMEOUT, () => {
    const prefix = join(folder, 'system')
    const installed = run('sh', ['-c', `umask 077; '${archive('minimal')}/install.sh' --system --prefix '${prefix}'`])
    expect(installed.stdout).toContain('Installed Sluice')
    const home = join(folder, 'nobody')
    mkdirSync(home, { mode: 0o777 })
    chmodSync(home, 0o777)
    const answer = run(join(prefix, 'bin/sluice'), ['agent', '-m', 'hello'], {
      uid: NOBODY,
      env: { HOME: home, SVC_DATA_DIR: join(home, 'd') },
    })
    expect(answer.stdout).toContain('You said: hello')
  })

  test('installs for a user who is not root, in the home folder', TIMEOUT, () => {
    const home = join(folder, 'home')
    mkdirSync(home)
    chmodSync(home, 0o777)
    // The Node of the tests can be in a folder that only root can read.
    const node = join(folder, 'node_modules/node/bin')
    mkdirSync(node, { recursive: true })
    cpSync(realpathSync(process.execPath), join(node, 'node'))
    const env = { HOME: home, PATH: [node, '/usr/bin', '/bin'].join(delimiter) }
    const script = join(archive('minimal'), 'install.sh')
    expect(run(script, [], { uid: NOBODY, env }).stdout).toContain(`: ${home}/.local/bin/sluice`)
    expect(run(join(home, '.local/bin/sluice'), ['--version'], { uid: NOBODY, env }).stdout).toMatch(/^sluice \d/)
    const refused = run(script, ['--system', '--prefix', '/usr/local'], { uid: NOBODY, env })
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('run the installer with sudo') })
    expect(run(script, ['--uninstall'], { uid: NOBODY, env }).stdout).toContain('Removed Sluice')
  })
})

test('npm installs the package, and native packages come at the locked versions', TIMEOUT, () => {
  const prefix = join(folder, 'npm')
  const env = { ...registry(), HOME: join(folder, 'npm-home'), npm_config_cache: join(folder, 'npm-cache') }
  const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)
  const from = performance.now()
  const installed = run('npm', ['install', '-g', '--prefix', prefix, '--loglevel=error', npmPackages.get('full') ?? ''], {
    env: { ...env, PATH },
  })
  expect(installed.status).toBe(0)
  const program = join(prefix, 'bin/sluice')
  expect(run(program, ['agent', '-m', 'hello'], { env: { PATH, SVC_DATA_DIR: join(folder, 'npm-data') } }).stdout).toContain(
    'You said: hello',
  )
  console.log(`npm install -g to the first reply: ${((performance.now() - from) / 1000).toFixed(1)} s`)

  const features = () => run(program, ['features'], { env: { PATH, SVC_DATA_DIR: join(folder, 'npm-data') } }).stdout
  expect(features()).toContain('run: sluice native install serialport')
  const native = run(program, ['native', 'install', 'serialport', 'usb', '--json'], { env: { ...env, PATH } })
  const { peerDependencies } = JSON.parse(readFileSync(join(prefix, 'lib/node_modules/sluice/package.json'), 'utf8'))
  expect(JSON.parse(native.stdout)).toEqual(['serialport', 'usb'].map((name) => ({ name, version: peerDependencies[name], problem: null })))
  expect(features()).not.toContain('run: sluice native install serialport')
})
