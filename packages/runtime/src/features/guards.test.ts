import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from '@sluice/config'
import { testHost } from '@sluice/testkit/host'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createGuards } from './guards.ts'

let base: string
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'guards-'))
})
afterAll(() => rmSync(base, { recursive: true }))

const guardsOf = async (toml: string) => {
  const dataDir = join(base, 'data')
  const config = await parseConfig({ configFile: join(dataDir, 'config.toml'), dataDir, features: [], env: {} }, toml)
  const { clock, log } = testHost()
  return createGuards(config, {
    dataDir,
    clock,
    log: { ...log, child: () => ({ ...log, child: () => log as never }) as never } as never,
    sandboxes: () => [],
    started: Promise.resolve(),
    signal: new AbortController().signal,
  })
}

test.each(['backend = "none"', 'backend = "auto"', 'required = true'])(
  'without a working sandbox nothing is confined: %s',
  async (toml) => {
    const { confines, sandbox, sandboxChosen } = await guardsOf(`[security.sandbox]\n${toml}\n`)
    expect(confines()).toBe(false)
    await sandboxChosen()
    expect(sandbox.latest()).toBeDefined()
    expect(confines()).toBe(false)
  },
)

test('the workspace of features is that of the main agent, and none of the files around it', async () => {
  const dataDir = join(base, 'data')
  const { workspace } = await guardsOf('[agents.a]\n')
  await workspace.write('recording.wav', Buffer.from('x'))
  expect(existsSync(join(dataDir, 'workspace/recording.wav'))).toBe(true)
  for (const path of ['../config.toml', join(dataDir, 'workspaces/a/x'), '/etc/passwd'])
    await expect(workspace.read(path, { bytesMax: 10 })).rejects.toMatchObject({ code: 'forbidden' })
})
