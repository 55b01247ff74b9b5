import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testHost } from '@sluice/testkit/host'
import { expect, onTestFinished, test } from 'vitest'
import { readIdentity } from './read-identity.ts'

test('joins the identity files of an agent, and none of another', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'identity-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const { log, logs } = testHost()
  expect(await readIdentity(dataDir, 'main', log)).toBe('')
  mkdirSync(join(dataDir, 'agents', 'main'), { recursive: true })
  writeFileSync(join(dataDir, 'agents', 'main', 'AGENTS.md'), 'Run the tests.\n')
  writeFileSync(join(dataDir, 'agents', 'main', 'SOUL.md'), `You are calm.${' '.repeat(40_000)}Not read.`)
  expect(await readIdentity(dataDir, 'main', log)).toBe('You are calm.\n\nRun the tests.')
  expect(await readIdentity(dataDir, 'support', log)).toBe('')
  expect(logs).toEqual([])
})
