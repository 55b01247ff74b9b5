import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { hasProgram, missingPackages } from './on-this-machine.ts'

test('a program is found by its name in the usual folders', () => {
  expect([hasProgram('sh'), hasProgram('no-such-program-here')]).toEqual([true, false])
})

test('packages that cannot be resolved are named with the one command that installs them', () => {
  const { url } = import.meta
  expect(missingPackages(['vitest'], url)).toBeUndefined()
  expect(missingPackages(['vitest', 'no-such-a'], url)).toBe('the package no-such-a is not installed; run: sluice native install no-such-a')
  expect(missingPackages(['no-such-a', 'no-such-b'], url)).toBe(
    'the packages no-such-a, no-such-b are not installed; run: sluice native install no-such-a no-such-b',
  )
})

test('a package whose install script did not run is not compiled', () => {
  const root = mkdtempSync(join(tmpdir(), 'sluice-packages-'))
  try {
    const folder = join(root, 'node_modules', 'native')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'index.js'), '')
    writeFileSync(join(folder, 'binding.gyp'), '{}')
    const missing = () => missingPackages(['native'], pathToFileURL(join(root, 'main.js')).href)
    expect(missing()).toBe('the package native is not compiled; run: sluice native install native')
    mkdirSync(join(folder, 'build', 'Release'), { recursive: true })
    expect(missing()).toBeUndefined()
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})
