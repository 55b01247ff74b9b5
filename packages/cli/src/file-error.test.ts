import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { asFileError } from './file-error.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-file-error-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test.each([
  ['daemon', '--port', '0'],
  ['config', 'init'],
  ['config', 'set', 'gateway.port', '1'],
  ['pair', 'list'],
  ['agent', '-m', 'x'],
  ['features'],
])('a data directory that is a file is explained in one line: sluice %s %s', async (...command) => {
  const dataDir = join(folder, 'file')
  writeFileSync(dataDir, '')
  const { code, err } = await sluiceWith([])(...command, '--data-dir', dataDir)
  expect(code).not.toBe(0)
  expect(err.trim().split('\n')).toEqual([expect.stringContaining(dataDir)])
})

test('a database that cannot be opened is explained in one line', async () => {
  mkdirSync(join(folder, 'sluice.db'))
  const { code, err } = await sluiceWith([])('pair', 'list', '--data-dir', folder)
  expect(code).toBe(1)
  expect(err.trim().split('\n')).toHaveLength(1)
})

test('asFileError returns undefined for an error of another kind', () => {
  expect(asFileError(new TypeError('a bug'), folder)).toBeUndefined()
  expect(asFileError(Object.assign(new Error('x'), { code: 'ECONNREFUSED', syscall: 'connect' }), folder)).toBeUndefined()
})
