/** The scripts of package.json on a fresh machine. */
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-scripts-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

test('the scripts and the program require the same version of Node', () => {
  const required = ['scripts/bootstrap.mjs', 'packages/sdk/src/node-version.ts'].map(
    (file) => /NODE_MIN = '(\d+\.\d+)'/.exec(readFileSync(join(ROOT, file), 'utf8'))?.[1],
  )
  expect(required).toEqual([expect.any(String), required[0]])
})

test('every script installs its dependencies first', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
  for (const [name, script] of Object.entries(scripts)) expect(script, name).toMatch(/^node scripts\/bootstrap\.mjs \S/)
})

test('npm install fails and names the commands that work', () => {
  cpSync(join(ROOT, 'package.json'), join(root, 'package.json'))
  const { status, stderr } = spawnSync('npm', ['install', '--offline', '--logs-max=0'], { cwd: root, encoding: 'utf8' })
  expect(status).not.toBe(0)
  expect(stderr).toContain('type-npm-start-or-pnpm-install-instead')
})

test('a failed install prints its reason', () => {
  cpSync(join(ROOT, 'scripts/bootstrap.mjs'), join(root, 'scripts/bootstrap.mjs'))
  for (const file of ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml']) writeFileSync(join(root, file), '{}')
  mkdirSync(join(root, 'packages'))
  mkdirSync(join(root, 'bin'))
  const pnpm =
    '#!/bin/sh\n[ "$1" = --version ] && exec echo 11.0.0\ncase "$*" in *silent*) ;; *) echo "the certificate is unknown" ;; esac\nexit 7\n'
  writeFileSync(join(root, 'bin/pnpm'), pnpm, { mode: 0o755 })
  const env = { HOME: root, PATH: `${join(root, 'bin')}:${process.env.PATH}` }
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/bootstrap.mjs'), 'start'], { env, encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 7, stderr: expect.stringMatching(/the certificate is unknown\n.*pnpm install failed/) })
})

test('the first certificate that is not trusted ends an install', () => {
  cpSync(join(ROOT, 'scripts/bootstrap.mjs'), join(root, 'scripts/bootstrap.mjs'))
  for (const file of ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml']) writeFileSync(join(root, file), '{}')
  for (const folder of ['packages', 'bin']) mkdirSync(join(root, folder))
  const warning = 'WARN  GET https://registry.example/x error (SELF_SIGNED_CERT_IN_CHAIN). Will retry in 1 minute.'
  const pnpm = `#!/bin/sh\n[ "$1" = --version ] && exec echo 11.0.0\necho '${warning}'\nexec sleep 3600\n`
  writeFileSync(join(root, 'bin/pnpm'), pnpm, { mode: 0o755 })
  const env = { HOME: root, PATH: `${join(root, 'bin')}:${process.env.PATH}` }
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/bootstrap.mjs'), 'start'], { env, encoding: 'utf8' })
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/Will retry.*\n.*not trusted \(SELF_SIGNED_CERT_IN_CHAIN\)\n.*npm config set cafile/),
  })
})

describe('a clone whose package.json files and lockfile differ', () => {
  const command = (task: string, manifest: object = {}) => {
    cpSync(join(ROOT, 'scripts'), join(root, 'scripts'), { recursive: true })
    for (const folder of ['packages', 'profiles', 'bin', 'node_modules']) mkdirSync(join(root, folder))
    for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml']) writeFileSync(join(root, file), '{}')
    writeFileSync(join(root, 'package.json'), JSON.stringify(manifest))
    writeFileSync(join(root, 'profiles/always.ts'), "import acme from '@sluice/channel-acme'\n")
    const pnpm =
      '#!/bin/sh\n[ "$1" = --version ] && exec echo 11.0.0\ncase "$*" in *--no-frozen-lockfile*) exit 0 ;; esac\necho ERR_PNPM_OUTDATED_LOCKFILE\nexit 1\n'
    writeFileSync(join(root, 'bin/pnpm'), pnpm, { mode: 0o755 })
    const env = { HOME: root, PATH: `${join(root, 'bin')}:${process.env.PATH}` }
    return spawnSync(process.execPath, [join(root, 'scripts/bootstrap.mjs'), task], { env, encoding: 'utf8' })
  }
  const manifest = { devDependencies: { '@sluice/channel-acme': 'workspace:*' } }

  test('names the command that brings the lockfile up to date, which exists for users of npm too', () => {
    expect(command('exec', manifest)).toMatchObject({ status: 1, stderr: expect.stringContaining("run 'npm run update:lockfile'") })
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
    expect(scripts['update:lockfile']).toBe('node scripts/bootstrap.mjs update-lockfile')
  })

  test('is repaired by that command', () => {
    expect(command('update-lockfile', manifest)).toMatchObject({ status: 0 })
  })

  test('names a feature that a profile imports and the root lacks', () => {
    expect(command('exec')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('add "@sluice/channel-acme": "workspace:*" to its devDependencies'),
    })
  })
})

describe('a script that runs a program', () => {
  beforeEach(() => {
    cpSync(join(ROOT, 'scripts'), join(root, 'scripts'), { recursive: true })
    mkdirSync(join(root, 'node_modules/.bin'), { recursive: true })
  })

  const exec = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, 'scripts/tasks.mjs'), 'exec', ...args], { encoding: 'utf8', env: { PATH: process.env.PATH } })

  test('passes settings and arguments, and exits with its code', () => {
    const program = join(root, 'node_modules/.bin/tool')
    writeFileSync(program, '#!/bin/sh\necho "$SETTING" "$@"\nexit 3\n')
    chmodSync(program, 0o755)
    expect(exec('SETTING=a=b', 'tool', '--flag', 'x=y')).toMatchObject({ status: 3, stdout: 'a=b --flag x=y\n' })
  })

  test('runs files of the repository with the same Node', () => {
    writeFileSync(join(root, 'print.mjs'), 'console.log(process.execPath, process.argv[2])')
    expect(exec('node', 'print.mjs', 'one').stdout).toBe(`${process.execPath} one\n`)
  })
})

describe('a build that replaces another', () => {
  const DAY_MS = 24 * 60 * 60 * 1000
  const dist = () => join(root, 'dist')
  const files = () => readdirSync(dist()).filter((name) => name !== 'replaced.json')

  async function build(nowMs: number, contents: Record<string, string>) {
    const { replaceBuild } = (await import(join(ROOT, 'scripts/replace-build.mjs'))) as {
      replaceBuild(built: string, folder: string, nowMs: number): void
    }
    const built = mkdtempSync(join(root, 'built-'))
    for (const [name, text] of Object.entries(contents)) writeFileSync(join(built, name), text)
    replaceBuild(built, dist(), nowMs)
  }

  test('keeps the files of the old one for a week', async () => {
    await build(0, { 'sluice.mjs': 'first', 'a-1.mjs': 'a', 'both-1.mjs': 'both' })
    await build(1, { 'sluice.mjs': 'second', 'b-2.mjs': 'b', 'both-1.mjs': 'both' })
    expect(files()).toEqual(['a-1.mjs', 'b-2.mjs', 'both-1.mjs', 'sluice.mjs'])
    expect(readFileSync(join(dist(), 'sluice.mjs'), 'utf8')).toBe('second')
    await build(6 * DAY_MS, { 'sluice.mjs': 'third', 'c-3.mjs': 'c' })
    expect(files()).toEqual(['a-1.mjs', 'b-2.mjs', 'both-1.mjs', 'c-3.mjs', 'sluice.mjs'])
    await build(8 * DAY_MS, { 'sluice.mjs': 'fourth', 'c-3.mjs': 'c' })
    expect(files()).toEqual(['b-2.mjs', 'both-1.mjs', 'c-3.mjs', 'sluice.mjs'])
  })

  test('keeps a file that is part of the build again', async () => {
    await build(0, { 'sluice.mjs': 'first', 'a-1.mjs': 'a' })
    await build(1, { 'sluice.mjs': 'second' })
    await build(2, { 'sluice.mjs': 'first', 'a-1.mjs': 'a' })
    await build(30 * DAY_MS, { 'sluice.mjs': 'first', 'a-1.mjs': 'a' })
    expect(files()).toEqual(['a-1.mjs', 'sluice.mjs'])
    expect(readdirSync(dist())).not.toContain('replaced.json')
  })
})

describe('CI', { timeout: 300_000 }, () => {
  /** Runs scripts/ci.mjs with an `npm` that writes the report of each suite. `code` runs in it, as the shell code for one suite. */
  function ci(code: string, unreliable = '') {
    for (const name of ['scripts', 'docs', 'bin', 'calls']) mkdirSync(join(root, name))
    for (const name of ['ci.mjs', 'unreliable-tests.mjs']) cpSync(join(ROOT, 'scripts', name), join(root, 'scripts', name))
    writeFileSync(join(root, 'docs/unreliable-tests.md'), `| file | date | cause |\n|---|---|---|\n${unreliable}`)
    writeFileSync(join(root, 'scripts/check-bare-machine.mjs'), 'console.log("bare")')
    const npm = join(root, 'bin/npm')
    writeFileSync(
      npm,
      `#!/bin/sh
report() { [ -z "$SLUICE_TEST_REPORT" ] || echo "{\\"passed\\":$1,\\"failed\\":$2,\\"unhandled\\":0,\\"failures\\":[$3]}" > "$SLUICE_TEST_REPORT"; }
echo "output of $*"
case "$*" in ${code} esac
report 10 0 ''
`,
      { mode: 0o755 },
    )
    // The run of failed files alone.
    writeFileSync(
      join(root, 'scripts/bootstrap.mjs'),
      `import { spawnSync } from 'node:child_process'
process.exit(spawnSync(${JSON.stringify(npm)}, ['alone', ...process.argv.slice(2)], { stdio: 'inherit' }).status)`,
    )
    const env = { PATH: `${join(root, 'bin')}:${process.env.PATH}`, SLUICE_VM: '0', TMPDIR: root }
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'scripts/ci.mjs')], { env, encoding: 'utf8' })
    return { status, stdout, stderr, last: stdout.trimEnd().split('\n').at(-1) }
  }
  const failsFirst = `*test:postgres) report 7 1 '{"file":"a.test.ts"}'; exit 1;; alone*) report 1 0 ''; exit 0;;`

  test('prints each lane as a whole, the minutes of each, and the number of tests last', () => {
    const { status, stdout, last } = ci('none) ;;')
    expect({ status, last }).toEqual({ status: 0, last: 'Tests: 60 passed, 0 failed' })
    const lane = /lane machines\noutput of run -s test:postgres\nbare\noutput of run -s test:browser\n/
    expect(stdout).toMatch(lane)
    expect(stdout).toMatch(
      /\[ci\] source: \d+\.\d min \(npm run -s check \d+\.\d min, npm run -s test:source \d+\.\d min, npm run -s test:packages \d+\.\d min\)/,
    )
  })

  test('runs a failed file of any lane once more, and names it', () => {
    const { status, stderr, last } = ci(failsFirst)
    expect({ status, last }).toEqual({ status: 0, last: 'Tests: 58 passed, 0 failed' })
    expect(stderr).toContain('UNRELIABLE: a.test.ts failed and then passed')
  })

  test('fails for a file that is listed and was unreliable again', () => {
    const { status, stderr, last } = ci(failsFirst, `| a.test.ts | ${new Date().toISOString().slice(0, 10)} | a race |\n`)
    expect({ status, last }).toEqual({ status: 1, last: 'Tests: 58 passed, 1 failed' })
    expect(stderr).toContain('a.test.ts was unreliable twice')
  })

  test('ends a lane at its failure, finishes the others, and counts the failed tests', () => {
    const { status, stdout, stderr, last } = ci(`*test:source|alone*) report 7 2 '{"file":"b.test.ts"}'; exit 1;;`)
    expect({ status, last }).toEqual({ status: 1, last: 'Tests: 47 passed, 2 failed' })
    expect(stderr).toContain("'npm run -s test:source' failed, and again in: b.test.ts")
    expect(stdout).not.toContain('output of run -s test:packages')
    expect(stdout).toContain('output of run -s test:browser')
  })

  test('starts no lane after a failure of npm test other than a failed test', () => {
    const { status, stdout, stderr } = ci('test) exit 2;;')
    expect({ status, isBegun: stdout.includes('test:daemons') }).toEqual({ status: 1, isBegun: false })
    expect(stderr).toContain("'npm test' failed with 2")
  })
})
