import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sha256Hex } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, onTestFinished, test } from 'vitest'
import { readIdentity } from './read-identity.ts'

test('joins the identity files of an agent, and none of another', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'identity-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const { log, logs } = testHost()
  expect(await readIdentity({ dataDir, agent: 'main' }, log)).toBe('')
  mkdirSync(join(dataDir, 'agents', 'main'), { recursive: true })
  writeFileSync(join(dataDir, 'agents', 'main', 'AGENTS.md'), 'Run the tests.\n')
  writeFileSync(join(dataDir, 'agents', 'main', 'SOUL.md'), `You are calm.${' '.repeat(40_000)}Not read.`)
  expect(await readIdentity({ dataDir, agent: 'main' }, log)).toBe('You are calm.\n\nRun the tests.')
  expect(await readIdentity({ dataDir, agent: 'support' }, log)).toBe('')
  expect(logs).toMatchObject([{ message: 'only the beginning of an identity file is read', fields: { bytes: 40_022, read: 32_768 } }])
})

test('adds the accepted files of the workspace to the files of the data directory', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'identity-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const { log, workspace } = testHost()
  mkdirSync(join(dataDir, 'agents', 'main'), { recursive: true })
  writeFileSync(join(dataDir, 'agents', 'main', 'AGENTS.md'), 'Run the tests.\n')
  await workspace.write('AGENTS.md', Buffer.from('Answer in French.\n'))
  const read = (...accepted: string[]) => readIdentity({ dataDir, agent: 'main', workspace, accepted }, log)
  expect(await read()).toBe('Run the tests.')
  expect(await read(sha256Hex('Answer in French.\n'))).toBe('Run the tests.\n\nAnswer in French.')
})
