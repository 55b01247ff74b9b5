/** Parts of Sluice alone: the agent, the procedure engine and a sandbox, each without a server. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import offline from '@sluice/provider-offline'
import { defineFeature, defineTool, type Sandbox } from '@sluice/sdk'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openAgent } from './open-agent.ts'
import { openProcedures } from './open-procedures.ts'
import { openSandbox } from './open-sandbox.ts'

let dataDir: string
const closers: (() => Promise<unknown>)[] = []
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-alone-'))
})
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
  rmSync(dataDir, { recursive: true, force: true })
})

describe('openAgent', () => {
  test('runs turns in sessions that outlive it, and keeps other instances out until it has closed', { timeout: 60_000 }, async () => {
    const options = { features: [offline], dataDir, logger: false } as const
    const agent = await openAgent(options)
    closers.push(agent.close)
    await agent.run('my name is Ann', { session: 'notes' })
    await expect(openAgent(options)).rejects.toMatchObject({ code: 'conflict' })
    await Promise.all([agent.close(), agent.close()])
    expect(existsSync(join(dataDir, 'control.sock'))).toBe(false)
    await using again = await openAgent(options)
    const { text } = await again.run('what did I say?', { session: 'notes' })
    expect(text).toContain('my name is Ann')
  })
})

const noted: string[] = []
const notes = defineFeature({
  id: 'x-notes',
  build: () => ({
    tools: [
      defineTool({
        name: 'note',
        description: 'Notes a text.',
        input: v.object({ text: v.string() }),
        risk: 'write',
        egress: false,
        untrusted: false,
        async run({ text }) {
          noted.push(text)
          return text
        },
      }),
    ],
  }),
})

const TOML =
  '[sop]\nname = "ship"\ndescription = "Ships"\nversion = "1.0.0"\nexecution_mode = "deterministic"\n[[triggers]]\ntype = "manual"\n'
const STEPS = `## Steps

1. **Plan** - Notes the plan.
   - tools: note
   - input: {"text": "$event.release"}
2. **Check** - Asks a person.
   - kind: checkpoint
3. **Ship** - Notes the release.
   - tools: note
   - input: {"text": "$event.release"}
`

describe('openProcedures', () => {
  test('carries out steps without a model, and goes on with a waiting run after a restart', { timeout: 60_000 }, async () => {
    noted.length = 0
    const folder = join(dataDir, 'sops', 'ship')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'SOP.toml'), TOML)
    writeFileSync(join(folder, 'SOP.md'), STEPS)
    const config = { security: { policy: { auto_approve: ['note'] } } }
    const options = { features: [notes], dataDir, config, logger: false } as const
    const first = await openProcedures(options)
    closers.push(first.close)
    const run = await first.start('ship', { release: 'v2' })
    expect(await first.settled(run)).toMatchObject({ status: 'paused_checkpoint', step: 2 })
    expect(noted).toEqual(['v2'])
    await expect(first.start('nothing')).rejects.toMatchObject({ code: 'not_found' })
    await expect(first.settled('nothing')).rejects.toMatchObject({ code: 'not_found' })
    await first.close()

    await using second = await openProcedures(options)
    await second.approve(run)
    expect(await second.settled(run)).toMatchObject({ status: 'completed' })
    expect(noted).toEqual(['v2', 'v2'])
  })
})

describe('openSandbox', () => {
  /** Confines nothing: the proof by escape finds that out. */
  const pretender: Sandbox = {
    name: 'jail',
    strength: 1,
    probe: async () => ({ available: true, detail: 'so it says' }),
    wrap: (command) => command,
  }

  test('refuses every command without a backend that confines', { timeout: 60_000 }, async () => {
    const features = [defineFeature({ id: 'x-pretender', build: () => ({ sandboxes: [pretender] }) })]
    await using sandbox = await openSandbox({ features, dataDir, logger: false })
    await expect(sandbox.run({ file: 'true' })).rejects.toMatchObject({ code: 'unavailable' })
    expect(existsSync(join(dataDir, 'sluice.db'))).toBe(false)
  })

  test('runs commands in the workspace where no sandbox is required', { timeout: 60_000 }, async () => {
    const config = { security: { sandbox: { enabled: false } } }
    await using sandbox = await openSandbox({ features: [], dataDir, config, logger: false })
    expect(sandbox.backend.name).toBe('none')
    const result = await sandbox.run({
      file: 'sh',
      args: ['-c', 'cat > file.txt; echo $GREETING; exit 3'],
      env: { PATH: '/usr/bin:/bin', GREETING: 'hi' },
      input: 'text',
    })
    expect(result).toMatchObject({ exitCode: 3, stdout: 'hi\n', sandbox: 'none' })
    expect(readFileSync(join(sandbox.workspace, 'file.txt'), 'utf8')).toBe('text')
  })
})
