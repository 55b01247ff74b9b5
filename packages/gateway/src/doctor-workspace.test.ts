import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkWorkspace } from './doctor-workspace.ts'

let base = ''
let dataDir = ''
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'doctor-workspace-')))
  dataDir = join(base, 'home/.sluice')
  mkdirSync(dataDir, { recursive: true })
})
afterEach(() => rmSync(base, { recursive: true }))

test('a workspace in the data directory or beside it is fine, there or not', async () => {
  const inside = join(dataDir, 'workspace')
  expect(await checkWorkspace(inside, dataDir)).toMatchObject({ status: 'ok', detail: `${inside}, made at the first write` })
  mkdirSync(inside)
  mkdirSync(`${dataDir}-more`)
  for (const root of [inside, `${dataDir}-more`]) expect(await checkWorkspace(root, dataDir)).toMatchObject({ status: 'ok', detail: root })
})

test('a workspace that is or holds the data directory fails, by whatever path', async () => {
  symlinkSync(join(base, 'home'), join(base, 'link'))
  for (const root of [dataDir, join(base, 'home'), base, '/', join(base, 'link')])
    expect(await checkWorkspace(root, dataDir)).toMatchObject({
      check: 'workspace',
      status: 'fail',
      detail: expect.stringContaining('keys'),
    })
})
