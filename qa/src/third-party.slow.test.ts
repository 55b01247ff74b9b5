/** A feature in an npm package outside the repository is built into a bundle, by a profile file and by its name. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const NAMES = ['third-party-profile', 'third-party-flag']
let outside: string

beforeAll(() => {
  outside = mkdtempSync(join(tmpdir(), 'third-party-'))
  const installed = join(outside, 'node_modules', 'sluice-feature-hello')
  mkdirSync(installed, { recursive: true })
  for (const file of ['package.json', 'index.mjs']) cpSync(join(ROOT, 'examples/feature-hello', file), join(installed, file))
  cpSync(join(ROOT, 'node_modules/valibot'), join(outside, 'node_modules/valibot'), { recursive: true, dereference: true })
  // The generator loads a feature with the sdk that is installed for it.
  const documented = join(outside, 'node_modules', 'sluice-feature-hello-docs')
  mkdirSync(documented, { recursive: true })
  writeFileSync(
    join(documented, 'package.json'),
    '{"name":"sluice-feature-hello-docs","version":"1.0.0","type":"module","exports":"./index.mjs"}',
  )
  writeFileSync(
    join(documented, 'index.mjs'),
    `export { default } from ${JSON.stringify(join(ROOT, 'examples/feature-hello/index.mjs'))}\n`,
  )
  // Another copy of the sdk, as npm installs for a peer dependency: the bundle must not take it.
  const sdk = join(outside, 'node_modules', '@sluice', 'sdk')
  mkdirSync(sdk, { recursive: true })
  writeFileSync(join(sdk, 'package.json'), '{"name":"@sluice/sdk","version":"0.0.1","type":"module","exports":"./index.js"}')
  writeFileSync(join(sdk, 'index.js'), 'throw new Error("this copy of the sdk is not the one of the build")')
})
afterAll(() => {
  rmSync(outside, { recursive: true, force: true })
  for (const name of NAMES) rmSync(join(ROOT, 'dist', name), { recursive: true, force: true })
})

const run = (file: string, args: readonly string[]): string =>
  execFileSync(process.execPath, [file, ...args], { cwd: outside, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } })
const build = (...args: string[]): string => run(join(ROOT, 'scripts/build.mjs'), [...args, '--summary'])
const sluice = (name: string, ...args: string[]): string =>
  run(join(ROOT, 'dist', name, 'sluice.mjs'), [...args, '--data-dir', join(outside, 'data')])

test('by a profile file outside the repository', () => {
  writeFileSync(
    join(outside, 'mine.ts'),
    [
      "import { main } from '@sluice/cli'",
      "import offline from '@sluice/provider-offline'",
      "import hello from 'sluice-feature-hello'",
      "await main({ profile: 'mine', features: [offline, hello] })",
    ].join('\n'),
  )
  build('mine.ts', '--name', 'third-party-profile')
  const features = JSON.parse(sluice('third-party-profile', 'features', '--json')) as object[]
  expect(features).toContainEqual(expect.objectContaining({ feature: 'x-hello', kind: 'tool', compiled: true, state: 'ready' }))
  expect(sluice('third-party-profile', 'hello', 'say', 'Ann')).toBe('Hello, Ann!\n')
  expect(run(join(ROOT, 'dist/third-party-profile/sluice.mjs'), ['hello', 'say', '--help'])).toContain('hello say <name>')
  expect(sluice('third-party-profile', 'config', 'schema')).toContain('The word before the name')
})

test('has a generated page of its tools, commands and keys', () => {
  const page = run(join(ROOT, 'scripts/docs.mjs'), ['--feature', 'sluice-feature-hello-docs'])
  expect(page).toContain('Greets people. Tools: `hello_greet`.')
  expect(page).toContain('`sluice hello say <name>`: Greet somebody.')
  expect(page).toMatch(/## `\[hello\]`[\s\S]*\| `greeting` \| .* \| The word before the name \|/)
})

test('by its name, added to a profile', () => {
  build('minimal', '--features', 'sluice-feature-hello', '--name', 'third-party-flag')
  expect(sluice('third-party-flag', 'hello', 'say', 'Bob')).toBe('Hello, Bob!\n')
  expect(() => build('minimal', '--features', 'sluice-feature-nowhere')).toThrow()
})
