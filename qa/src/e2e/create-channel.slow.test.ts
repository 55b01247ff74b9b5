/** `pnpm create:channel` and `pnpm create:feature` write packages that take part in every suite at once. Runs in a copy of the repository. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../../..')
const COPIED = [
  ...['packages', 'profiles', 'qa', 'scripts', 'docs', 'package.json', 'tsconfig.base.json', 'biome.json', 'vitest.workspace.ts'],
  ...['CONTRIBUTING.md', 'README.md', 'SECURITY.md', 'pnpm-workspace.yaml', '.gitignore', '.changeset'],
]
/** Named by documentation and changed by no step. */
const LINKED = ['bench', 'examples', 'firmware', 'LICENSE', 'CHANGELOG.md']
const CHANNELS = [
  ['acme', []],
  ['borg', ['--connection']],
] as const

let copy = ''

/** Runs a program of the workspace in the copy. */
function run(program: string, ...args: readonly string[]): { readonly status: number | null; readonly output: string } {
  const [command, ...rest] = program === 'node' ? [process.execPath] : [process.execPath, join(copy, 'node_modules', program)]
  const { VITEST: _, SLUICE_SLOW: _slow, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(command ?? '', [...rest, ...args], { cwd: copy, encoding: 'utf8', env })
  return { status, output: stdout + stderr }
}

/** Copies the repository with links to the installed packages, but with its own links between the packages of the workspace. */
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'sluice-create-channel-'))
  for (const name of COPIED) cpSync(join(ROOT, name), join(copy, name), { recursive: true, verbatimSymlinks: true })
  for (const name of LINKED) symlinkSync(join(ROOT, name), join(copy, name))
  const modules = join(copy, 'node_modules')
  mkdirSync(join(modules, '@sluice'), { recursive: true })
  for (const name of readdirSync(join(ROOT, 'node_modules')).filter((each) => each !== '@sluice'))
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  for (const name of readdirSync(join(ROOT, 'node_modules/@sluice'))) link(name === 'qa' ? 'qa' : `packages/${name}`)
}, 60_000)
afterAll(() => rmSync(copy, { recursive: true, force: true }))

const link = (folder: string): void => symlinkSync(join(copy, folder), join(copy, 'node_modules/@sluice', basename(folder)))

/** Does the two steps that the command prints: the catalogue row and the profile. */
function takeSteps(name: string, output: string): void {
  const edit = (file: string, change: (text: string) => string): void =>
    writeFileSync(join(copy, file), change(readFileSync(join(copy, file), 'utf8')))
  const [row = ''] = new RegExp(` {2}'channel-${name}': \\{[^]*? {2}\\},\n`).exec(output) ?? []
  const [line = ''] = new RegExp(`import ${name} from .*\n`).exec(output) ?? []
  const [, list = ''] = /add it to the list `(\w+)`/.exec(output) ?? []
  edit('packages/sdk/src/feature/catalogue.ts', (text) => text.replace("  'channel-mattermost'", `${row}$&`))
  edit('profiles/always.ts', (text) => (line + text).replace(`const ${list} = [`, `$&${name}, `))
}

test('writes a channel with a webhook and one with a connection that pass every check', () => {
  for (const [name, options] of CHANNELS) {
    const { status, output } = run('node', 'scripts/create-channel.mjs', name, '--no-install', ...options)
    expect({ status, output }).toMatchObject({ status: 0 })
    takeSteps(name, output)
    const modules = join(copy, 'packages', `channel-${name}`, 'node_modules')
    cpSync(join(ROOT, 'packages/channel-bizchat/node_modules'), modules, { recursive: true, verbatimSymlinks: true })
    link(`packages/channel-${name}`)
  }
  const folders = CHANNELS.map(([name]) => `packages/channel-${name}`)
  expect(run('@biomejs/biome/bin/biome', 'check', '--write', 'profiles').status).toBe(0)
  expect(run('@biomejs/biome/bin/biome', 'check', '--error-on-warnings', 'package.json', ...folders)).toMatchObject({ status: 0 })

  writeFileSync(
    join(copy, 'tsconfig.json'),
    JSON.stringify({ extends: './tsconfig.base.json', include: ['profiles', ...folders.map((folder) => `${folder}/src`)] }),
  )
  expect(run('typescript/bin/tsc', '-p', 'tsconfig.json')).toMatchObject({ status: 0, output: '' })

  const suites = ['qa/src/channels.test.ts', 'qa/src/bare-webhooks.test.ts', 'qa/src/vectors', 'qa/src/repo.test.ts']
  const tested = run('vitest/vitest.mjs', 'run', '--config', 'vitest.workspace.ts', ...folders, ...suites, '--maxWorkers=1')
  expect(tested, tested.output).toMatchObject({ status: 0 })
  expect(run('node', 'qa/src/fuzz/run.ts', '--scheme', 'acme', '--count', '5000')).toMatchObject({ status: 0 })
}, 300_000)

test('writes a feature with a tool that passes every check', () => {
  const folder = 'packages/tool-dice'
  expect(run('node', 'scripts/create-feature.mjs', 'tool-dice', '--no-install')).toMatchObject({ status: 0 })
  cpSync(join(ROOT, 'packages/tool-memory/node_modules'), join(copy, folder, 'node_modules'), { recursive: true, verbatimSymlinks: true })
  link(folder)
  expect(run('node', 'scripts/docs.mjs')).toMatchObject({ status: 0, output: '' })
  expect(readFileSync(join(copy, 'docs/tools.md'), 'utf8')).toContain('`dice`')
  const formatted = ['package.json', 'profiles', 'packages/sdk/src/feature', folder]
  expect(run('@biomejs/biome/bin/biome', 'check', '--error-on-warnings', ...formatted)).toMatchObject({ status: 0 })
  writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify({ extends: './tsconfig.base.json', include: ['profiles', `${folder}/src`] }))
  expect(run('typescript/bin/tsc', '-p', 'tsconfig.json')).toMatchObject({ status: 0, output: '' })
  const suites = [folder, 'qa/src/repo.test.ts', 'qa/src/tool-decisions.test.ts']
  const tested = run('vitest/vitest.mjs', 'run', '--config', 'vitest.workspace.ts', ...suites, '--maxWorkers=1')
  expect(tested, tested.output).toMatchObject({ status: 0 })
}, 300_000)
