import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { afterEach, beforeEach, expect, test } from 'vitest'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'store-migrate-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

test.each([
  ['postgres://ada:secret@db.invalid/sluice', true],
  ['postgres://ada:secret@a.invalid,b.invalid:5433/sluice', true],
  ['postgres://ada@db.invalid/sluice?password=secret', true],
  ['postgres://ada@db.invalid:5433/sluice', false],
  ['postgres://a.invalid:5432,b.invalid:5433/sluice', false],
])('warns of a password in --url: %s is %s', async (url, isWarned) => {
  const { err } = await sluiceWith([])('store', 'migrate', '--to', 'postgres', '--url', url, '--data-dir', dataDir)
  expect([err.includes('set SVC_STORE_URL in place of --url'), err.includes('secret')]).toEqual([isWarned, false])
})
