import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildHint } from '@sluice/sdk'
import { afterAll, expect, test } from 'vitest'
import { leftOutFiles } from './left-out-files.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'left-out-'))
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

test('finds the file of a left-out feature with its build instruction', () => {
  expect(leftOutFiles(dataDir, [])).toEqual([])
  const file = join(dataDir, 'robot.toml')
  writeFileSync(file, '')
  expect(leftOutFiles(dataDir, ['tool-files'])).toEqual([{ file, feature: 'hardware-safety', build: buildHint('hardware-safety') }])
  expect(leftOutFiles(dataDir, ['hardware-safety'])).toEqual([])
})
