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
