/** The changes of a test file to its process are found, named and restored before the next file runs. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { processState } from './process-state.ts'

const leftListener = (): void => {}

const set = (object: object, key: string, value: unknown): unknown =>
  Object.defineProperty(object, key, { value, configurable: true, writable: true, enumerable: false })

test.each<[name: string, change: () => void, isRestored: () => boolean]>([
  ['globalThis.Response', () => set(globalThis, 'Response', class {}), () => new Response('x').status === 200],
  ['globalThis.leaked', () => set(globalThis, 'leaked', 1), () => !('leaked' in globalThis)],
  ['globalThis.setTimeout', () => set(globalThis, 'setTimeout', () => {}), () => /native|function setTimeout/.test(`${setTimeout}`)],
  ['Date.now', () => set(Date, 'now', () => 0), () => Date.now() > 0],
  ['Array.prototype.last', () => set(Array.prototype, 'last', () => 0), () => !('last' in [])],
  ['Math.random', () => set(Math, 'random', () => 0.5), () => new Set([Math.random(), Math.random(), Math.random()]).size > 1],
  ['fs.readFileSync', () => set(fs, 'readFileSync', () => ''), () => fs.readFileSync(import.meta.filename, 'utf8') !== ''],
  ['console.error', () => set(console, 'error', () => {}), () => `${console.error}` !== '() => {}'],
  ['process.platform', () => set(process, 'platform', 'aix'), () => process.platform !== 'aix'],
  ['process.env.LEFT_BY_A_TEST', () => (process.env.LEFT_BY_A_TEST = 'x'), () => process.env.LEFT_BY_A_TEST === undefined],
  ['process.env.PATH', () => delete process.env.PATH, () => process.env.PATH !== undefined],
  [
    'a listener of process for warning',
    () => process.on('warning', leftListener),
    () => !process.listeners('warning').includes(leftListener),
  ],
  ['the umask', () => process.umask(0o777), () => process.umask() !== 0o777],
  ['the working directory', () => process.chdir(tmpdir()), () => process.cwd() !== tmpdir()],
  ['process.exitCode', () => (process.exitCode = 3), () => process.exitCode !== 3],
  ['Error.stackTraceLimit', () => (Error.stackTraceLimit = 0), () => Error.stackTraceLimit > 0],
] as const)('%s', (name, change, isRestored) => {
  const before = processState()
  expect(before.restore()).toEqual([])
  change()
  expect(before.restore()).toEqual([name])
  expect(isRestored()).toBe(true)
  expect(before.restore()).toEqual([])
})

test('a registry that a library keeps for its copies stays', () => {
  const before = processState()
  const registry = Symbol.for('a-library.registry')
  Object.assign(globalThis, { [registry]: {} })
  expect(before.restore()).toEqual([])
  Reflect.deleteProperty(globalThis, registry)
})
