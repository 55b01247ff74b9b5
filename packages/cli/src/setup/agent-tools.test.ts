import { join } from 'node:path'
import openai from '@sluice/provider-openai'
import { scratch } from '@sluice/qa/daemons/bundle'
import { type Feature, howToGet } from '@sluice/sdk'
import files from '@sluice/tool-files'
import memory from '@sluice/tool-memory'
import shell from '@sluice/tool-shell'
import web from '@sluice/tool-web'
import { expect, onTestFinished, test } from 'vitest'
import type { CliContext } from '../context.ts'
import { toolLines } from './agent-tools.ts'

async function linesOf(config: string, features: readonly Feature[]) {
  const { dir, dispose } = scratch(config)
  onTestFinished(dispose)
  const context = { dataDir: dir, configFile: join(dir, 'config.toml'), env: {}, features }
  const lines = await toolLines(context as unknown as CliContext)
  return Object.fromEntries(lines.map((line) => [line.slice(2, 14).trim(), line.slice(14)]))
}

test('says what the agent can do, and the key that changes it', async () => {
  const all = [files, shell, web, memory, openai]
  expect(
    await linesOf('[provider]\nkind = "openai"\nmodel = "m"\napi_key = "k"\n[security.policy]\nshell = "script"\n', all),
  ).toMatchObject({
    files: 'reads, edits and searches files of its workspace',
    commands: expect.stringMatching(/^runs scripts in a sandbox.*shell = "plain"/),
    'web pages': 'reads public pages',
    'web search': 'none; set [tools.web] search to brave, tavily or searxng',
    memories: 'remembers facts for each person',
    pictures: 'sees them',
    date: expect.stringContaining('[agent] timezone'),
  })
  const changed = `[provider]\nkind = "openai"\nmodel = "m"\napi_key = "k"\nbase_url = "http://127.0.0.1:1/v1"\n[agent]\ntimezone = "Asia/Kolkata"\n[security.policy]\nshell = "plain"
[security.sandbox]\nenabled = false\n[tools.web]\nfetch = false\nsearch = "brave"\nsearch_key = "k"\n`
  expect(await linesOf(changed, all)).toMatchObject({
    commands: 'runs plain commands without a sandbox; for scripts, set [security.policy] shell = "script"',
    'web pages': 'reads none; for them, set [tools.web] fetch = true',
    'web search': 'searches with brave',
    pictures: 'sees none; where the model can, set [provider] media = ["image"]',
    date: 'knows it in the time zone Asia/Kolkata',
  })
})

test('says what the level readonly leaves', async () => {
  const lines = await linesOf('[security.policy]\nshell = "script"\nlevel = "readonly"\n', [files, shell, memory])
  expect([lines.files, lines.commands, lines.memories]).toEqual([
    expect.stringMatching(/^reads and searches files .*level = "supervised"$/),
    expect.stringMatching(/^runs commands that only read in a sandbox/),
    expect.stringMatching(/^recalls facts, and remembers no new ones/),
  ])
})

test('names the build that adds what is left out', async () => {
  expect((await linesOf('', []))['web pages']).toBe(howToGet('tool-web'))
})
