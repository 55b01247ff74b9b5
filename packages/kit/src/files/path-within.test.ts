import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isWithin, withoutLinks } from './path-within.ts'

test.each([
  ['/data', '/data', true],
  ['/data/config.toml', '/data', true],
  ['/data/..config/file', '/data', true],
  ['/data/...', '/data', true],
  ['/data/', '/data', true],
  ['/anything', '/', true],
  ['/database', '/data', false],
  ['/data/../etc', '/data', false],
  ['/', '/data', false],
  ['/data', '/data/inner', false],
])('whether %s is within %s: %s', (path, folder, expected) => {
  expect(isWithin(path, folder)).toBe(expected)
})

test('links are resolved in the part of a path that exists', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'path-within-')))
  try {
    mkdirSync(join(folder, 'real'))
    symlinkSync('real', join(folder, 'link'))
    expect(await withoutLinks(join(folder, 'link/missing/file'))).toBe(join(folder, 'real/missing/file'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
