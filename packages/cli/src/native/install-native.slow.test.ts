import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { installNative } from './install-native.ts'
import { type Build, projectOf } from './native-lock.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-native-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const build: Build = {
  versions: { 'spi-device': '3.1.2', serialport: '13.0.0', usb: '3.1.0' },
  allowScripts: { 'spi-device': true },
  lock: {
    name: 'sluice',
    version: '0.1.0',
    packages: {
      '': {},
      'node_modules/debug': { version: '4.4.0', dependencies: { ms: '2.1.3' } },
      'node_modules/ms': { version: '2.1.3' },
      'node_modules/nan': { version: '2.30.0' },
      'node_modules/serialport': { version: '13.0.0', dependencies: { debug: '4.3.0' } },
      'node_modules/serialport/node_modules/debug': { version: '4.3.0', dependencies: { ms: '2.1.3' } },
      'node_modules/spi-device': { version: '3.1.2', dependencies: { nan: '2.30.0' } },
      'node_modules/usb': { version: '3.1.0', optionalDependencies: { debug: '4.4.0' } },
    },
  },
}

/** Writes an npm that makes a module for each package of the lockfile; `spi-device` cannot be loaded, as if it were not compiled. */
function npm(script = ''): readonly string[] {
  const file = join(folder, 'npm.cjs')
  writeFileSync(
    file,
    `const fs = require('node:fs')
    if (process.argv[2] !== 'ci') process.exit(1)
    ${script}
    const { packages } = JSON.parse(fs.readFileSync('package-lock.json'))
    for (const [path, { version }] of Object.entries(packages)) {
      if (!path) continue
      fs.mkdirSync(path, { recursive: true })
      const source = path.endsWith('spi-device') ? 'throw new Error("no binding")' : ''
      fs.writeFileSync(path + '/index.js', source)
      fs.writeFileSync(path + '/version', version)
    }`,
  )
  return [process.execPath, file]
}

const install = (names: readonly string[], program = npm()) =>
  installNative({ folder, build, names, env: process.env, signal: new AbortController().signal, npm: program })
const modules = () => readdirSync(join(folder, 'node_modules')).toSorted()

test('a selection contains the packages that it depends on, where each is found', () => {
  const foldersOf = (...names: string[]) => Object.keys((projectOf(build, names).lockfile as { packages: object }).packages)
  expect(foldersOf('serialport')).toEqual([
    ...['', 'node_modules/ms', 'node_modules/serialport', 'node_modules/serialport/node_modules/debug'],
  ])
  expect(foldersOf('usb')).toEqual(['', 'node_modules/debug', 'node_modules/ms', 'node_modules/usb'])
  expect(projectOf(build, ['usb']).manifest).toMatchObject({ dependencies: { usb: '3.1.0' }, allowScripts: { 'spi-device': true } })
})

test('adds packages and keeps the ones that were installed before', { timeout: 60_000 }, async () => {
  expect(await install(['usb'])).toEqual([{ name: 'usb', version: '3.1.0', problem: undefined }])
  expect(modules()).toEqual(['debug', 'ms', 'usb'])
  expect(await install(['serialport'])).toEqual([{ name: 'serialport', version: '13.0.0', problem: undefined }])
  expect(modules()).toEqual(['debug', 'ms', 'serialport', 'usb'])
  expect(readdirSync(folder).toSorted()).toEqual(['node_modules', 'npm.cjs'])
})

test('a package that cannot be loaded says why', { timeout: 60_000 }, async () => {
  const [spi, usb] = await install(['spi-device', 'usb'])
  expect(spi?.problem).toMatch(/could not be compiled: it needs Python 3|needs the C\+\+ headers of Node/)
  expect(usb?.problem).toBeUndefined()
})

test('a failure of npm changes nothing and shows the end of its output', { timeout: 60_000 }, async () => {
  mkdirSync(join(folder, 'node_modules', 'usb'), { recursive: true })
  writeFileSync(join(folder, 'node_modules', 'usb', 'index.js'), '/* first */')
  const failing = npm("console.error('the registry cannot be reached'); process.exit(1)")
  await expect(install(['serialport'], failing)).rejects.toThrow(/nothing was changed:\nthe registry cannot be reached$/)
  expect(readFileSync(join(folder, 'node_modules', 'usb', 'index.js'), 'utf8')).toBe('/* first */')
  expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([])
  expect(existsSync(join(folder, 'node_modules', 'serialport'))).toBe(false)
})
