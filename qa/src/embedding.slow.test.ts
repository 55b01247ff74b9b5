/** The examples of docs/embedding.md as their readers run them: on packed packages, installed by npm outside the repository. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const EXAMPLES = readdirSync(join(ROOT, 'examples')).filter((name) => name.startsWith('embed-'))
const FEATURE = 'feature-hello'
let outside: string

interface Manifest {
  readonly scripts: Readonly<Record<'start' | 'try' | 'types', string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const manifestOf = (example: string): Manifest => JSON.parse(readFileSync(join(ROOT, 'examples', example, 'package.json'), 'utf8'))
const isOurs = (name: string): boolean => name.startsWith('@sluice/')

/** Installs every tarball once, next to what the examples name from the registry: all examples resolve from this one folder. */
beforeAll(async () => {
  outside = mkdtempSync(join(tmpdir(), 'sluice-embedding-'))
  const { packAll } = (await import(join(ROOT, 'scripts/pack.mjs'))) as {
    packAll(folder: string): Promise<{ name: string; file: string }[]>
  }
  const packed = await packAll(join(outside, 'tarballs'))
  const named = EXAMPLES.flatMap((example) =>
    Object.entries({ ...manifestOf(example).dependencies, ...manifestOf(example).devDependencies }),
  )
  const tarballs = Object.fromEntries(packed.map(({ name, file }) => [name, `file:${file}`]))
  for (const [name] of named.filter(([name]) => isOurs(name))) expect(Object.keys(tarballs)).toContain(name)
  const dependencies = { ...Object.fromEntries(named.filter(([name]) => !isOurs(name))), ...tarballs }
  writeFileSync(join(outside, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies, overrides: tarballs }))
  const npm = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline']
  execFileSync('npm', npm, { cwd: outside, stdio: ['ignore', 'ignore', 'inherit'] })
  for (const example of [...EXAMPLES, FEATURE]) cpSync(join(ROOT, 'examples', example), join(outside, example), { recursive: true })
}, 900_000)
afterAll(() => rmSync(outside, { recursive: true, force: true }), 120_000)

const runIn = (example: string, program: string, args: readonly string[]): string => {
  const dataDir = join(outside, 'data', example)
  mkdirSync(dataDir, { recursive: true })
  const env = { NO_COLOR: '1', PATH: process.env.PATH, HOME: process.env.HOME, PORT: '0', DATA_DIR: dataDir }
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: join(outside, example), encoding: 'utf8', timeout: 120_000, env })
  expect({ status, stderr, stdout }).toMatchObject({ status: 0 })
  return stdout
}

const OUTPUT: Readonly<Record<string, RegExp>> = {
  'embed-express': /\+15550199 wrote: hello\n200 .*"ok"[\s\S]*401 .*Invalid signature/,
  'embed-hono': /200 Offline provider[\s\S]*session_start\na page of this application/,
  'embed-channel': /You said: hello[\s\S]*the last one: hello/,
  'embed-procedures': /deploying v1\.4\.0 to staging[\s\S]*paused_checkpoint[\s\S]*deploying v1\.4\.0 to production[\s\S]*ended: completed/,
  'embed-sandbox': /^sandbox: .*\nI run in .*workspace\nmine\nexit code: 0/,
}

test('every example has an expected output', () => {
  expect(Object.keys(OUTPUT).toSorted()).toEqual(EXAMPLES.toSorted())
})

describe.each(EXAMPLES)('%s', (example) => {
  test('runs from plain JavaScript and ends by itself', ({ skip }) => {
    const output = runIn(example, process.execPath, ['index.mjs', '--try'])
    skip(/^sandbox: none[\s\S]*nothing was run/.test(output), 'no sandbox works on this machine')
    expect(output).toMatch(OUTPUT[example] ?? /^$/)
  })

  test('passes the TypeScript compiler', () => {
    const [program = '', ...args] = manifestOf(example).scripts.types.split(' ')
    expect(runIn(example, join(outside, 'node_modules/.bin', program), args)).toBe('')
  })
})

test('a feature of another package passes its conformance suite with the packed test kit', () => {
  expect(runIn(FEATURE, join(outside, 'node_modules/.bin/vitest'), ['run'])).toMatch(/Tests .*17 passed/)
})
