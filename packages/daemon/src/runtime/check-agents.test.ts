import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unknownToolNames } from '@sluice/runtime'
import { checkAgents, checkIdentity } from '@sluice/runtime/doctor'
import { defineFeature, sha256Hex } from '@sluice/sdk'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openRuntime } from './open-runtime.ts'

const offline = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({ provider: 'offline' }) as never }] }),
})

let dataDir = ''
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'doctor-agents-'))
})
afterEach(() => rmSync(dataDir, { recursive: true }))

async function open(toml: string) {
  const configFile = join(dataDir, 'config.toml')
  await writeFile(configFile, `[security.sandbox]\nenabled = false\n${toml}`)
  const options = { configFile, dataDir, features: [offline], env: {}, profile: 'test', version: '0.0.0', quiet: true }
  return { runtime: await openRuntime(options), options }
}

test('checks what each further agent has of its own, and names the agent and its section', async () => {
  const { runtime, options } = await open(
    '[agents.a]\n[agents.b]\npolicy = { level = "full" }\nprovider = { kind = "offline", model = "x" }\n',
  )
  try {
    const checks = await checkAgents(runtime, options)
    expect(checks.map(({ check, status }) => [check, status])).toEqual([
      ['a: workspace', 'ok'],
      ['a: policy', 'ok'],
      ['a: shell', 'ok'],
      ['b: workspace', 'ok'],
      ['b: policy', 'warn'],
      ['b: shell', 'ok'],
      ['b: provider', 'warn'],
    ])
    expect(checks[4]?.fix).toBe('set [agents.b.policy] level = "supervised"')
    expect(checks[6]?.fix).toContain('agents.b.provider')
  } finally {
    await runtime.close(0)
  }
})

test('names the whole SHA-256 of an identity file that waits, with the command that accepts it, and is silent without one', async () => {
  const accepted = sha256Hex('Be calm.')
  const { runtime } = await open(`[agent]\nidentity_sha256 = ["${accepted}"]\n[agents.a]\n`)
  mkdirSync(join(dataDir, 'workspace'), { recursive: true })
  await writeFile(join(dataDir, 'workspace', 'SOUL.md'), 'Be calm.')
  try {
    expect(await checkIdentity(runtime)).toMatchObject([
      { check: 'main: identity', status: 'ok', detail: expect.stringContaining('SOUL.md') },
    ])
    await writeFile(join(dataDir, 'workspace', 'AGENTS.md'), 'Be quick.')
    const [waiting] = await checkIdentity(runtime)
    const both = `["${accepted}","${sha256Hex('Be quick.')}"]`
    expect(waiting).toMatchObject({
      status: 'warn',
      fix: `read each file, then accept these contents: sluice config set agent.identity_sha256 '${both}'`,
    })
    expect(waiting?.detail).toContain(sha256Hex('Be quick.'))
  } finally {
    await runtime.close(0)
  }
})

test('says how to use the identity file of a workspace that accepts none, without a warning', async () => {
  const { runtime } = await open('[agents.a]\nworkspace = "a"\n')
  mkdirSync(join(dataDir, 'a'), { recursive: true })
  await writeFile(join(dataDir, 'a', 'AGENTS.md'), 'Be brief.')
  try {
    const [check, ...others] = await checkIdentity(runtime)
    expect(others).toEqual([])
    expect(check).toMatchObject({ check: 'a: identity', status: 'ok' })
    expect(check?.detail).toContain(`sluice config set agents.a.identity_sha256 '["${sha256Hex('Be brief.')}"]'`)
  } finally {
    await runtime.close(0)
  }
})

test('warns of each workspace that every sandbox shows to the commands of other agents', async () => {
  const shown = mkdtempSync(join(tmpdir(), 'doctor-shown-'))
  for (const name of ['main', 'b']) mkdirSync(join(shown, name))
  const { runtime, options } = await open(
    `[agent]\nworkspace = "${shown}/main"\n[agents.a]\nworkspace = "a"\n[agents.b]\nworkspace = "${shown}/b"\n`,
  )
  mkdirSync(join(dataDir, 'a'))
  try {
    const checks = await checkAgents(runtime, options, [shown, dataDir])
    expect(checks.filter(({ status }) => status === 'warn').map(({ check, fix }) => [check, fix])).toEqual([
      ['main: workspace', 'set [agent] workspace to a folder elsewhere'],
      ['b: workspace', 'set [agents.b] workspace to a folder elsewhere'],
    ])
  } finally {
    await runtime.close(0)
    rmSync(shown, { recursive: true })
  }
})

test('names the tools in the lists of an agent that do not exist', async () => {
  const { runtime } = await open('[agents.a]\ntools = ["none"]\npolicy = { auto_approve = ["*"], always_ask = ["nothing"] }\n')
  try {
    expect(unknownToolNames(runtime.snapshot())).toEqual([
      '`agents.a.tools` names the tool "none", which does not exist',
      '`agents.a.policy.always_ask` names the tool "nothing", which does not exist',
    ])
    expect(await checkAgents(runtime, { dataDir, configFile: '' })).not.toEqual([])
  } finally {
    await runtime.close(0)
  }
})

test('has nothing to check without further agents', async () => {
  const { runtime, options } = await open('')
  expect(await checkAgents(runtime, options)).toEqual([])
  await runtime.close(0)
})
