import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, defineFeature } from '@sluice/sdk'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { configSchema } from '../describe/json-schema.ts'
import { configReference } from '../describe/reference.ts'
import { setConfig } from '../edit/set-config.ts'
import { parseConfig, sectionsOf } from '../read/read-config.ts'
import type { TomlProblem } from '../toml/problem.ts'
import { agentsOfChats, configuredAgents, workspaceRoots } from './configured-agents.ts'

const chat = defineFeature({
  id: 'channel-roomchat',
  section: { path: 'channels_config.roomchat', schema: v.object({ token: v.optional(v.string(), 't') }) },
  build: () => ({}),
})
const trigger = defineFeature({
  id: 'trigger-mqtt',
  section: { path: 'channels_config.mqtt', schema: v.object({ broker: v.optional(v.string(), '') }) },
  build: () => ({}),
})
const features = [chat, trigger]

let dataDir: string
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'agents-'))
})
afterAll(() => rmSync(dataDir, { recursive: true }))

const load = (text: string) => parseConfig({ configFile: join(dataDir, 'config.toml'), dataDir, features, env: {} }, text)

async function problems(text: string): Promise<string[]> {
  const error: unknown = await load(text).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof AppError) || error.code !== 'config_invalid') throw new Error(`no problem: ${error}`)
  return (error.fields.problems as TomlProblem[]).map(({ line, column, message }) => `${line}:${column} ${message}`)
}

describe('an agent', () => {
  test('takes every key that it does not set from the sections of the main agent', async () => {
    const config = await load(`
      [agent]
      system_prompt = "Main."
      max_iterations = 3
      [provider]
      kind = "openai"
      api_key = "k"
      model = "big"
      [security.policy]
      level = "full"
      auto_approve = ["shell"]
      [agents.support]
    `)
    const { main, support } = Object.fromEntries(configuredAgents(config, dataDir))
    expect(support).toEqual({ ...main, name: 'support', workspace: join(dataDir, 'workspaces/support') })
    expect(workspaceRoots(config, dataDir)).toEqual([join(dataDir, 'workspace'), join(dataDir, 'workspaces/support')])
  })

  test.each<[string, string | undefined, string | undefined]>([
    ['[agents.support]', 'script', 'script'],
    ['[security.policy]\nlevel = "full"\nauto_approve = ["shell"]\n[agents.support]', 'script', 'script'],
    ['[security.policy]\nallowed_commands = ["git"]\n[agents.support]', 'plain', 'plain'],
    ['[security.policy]\nalways_ask = []\n[agents.support]', 'plain', 'plain'],
    ['[security.policy]\nshell = "script"\nallowed_commands = ["git"]\n[agents.support]\npolicy = { level = "full" }', 'script', 'plain'],
    ['[security.policy]\nshell = "plain"\n[agents.support]\npolicy = { shell = "script" }', 'plain', 'script'],
    ['[agents.support]\npolicy = {}', 'script', 'script'],
  ])('keeps plain commands where an older file limits them: %j', async (text, main, support) => {
    const agents = configuredAgents(await load(text), dataDir)
    expect([agents.get('main')?.policy.shell, agents.get('support')?.policy.shell]).toEqual([main, support])
  })

  test('overrides single limits of a turn', async () => {
    const limits = {
      max_iterations: 3,
      turn_timeout_secs: 60,
      step_timeout_secs: 20,
      max_turn_tokens: 1000,
      max_history_messages: 4,
      max_tool_result_chars: 500,
    }
    const lines = Object.entries(limits).map(([key, value]) => `${key} = ${value}\n`)
    const config = await load(`[agent]\nmax_iterations = 7\nmax_retries = 1\n[agents.support]\n${lines.join('')}`)
    const { main, support } = Object.fromEntries(configuredAgents(config, dataDir))
    expect(main?.agent).toMatchObject({ max_iterations: 7, max_retries: 1 })
    expect(support?.agent).toEqual({ ...main?.agent, ...limits })
  })

  test('overrides single keys of its prompt, tools, model and policy', async () => {
    const config = await load(`
      [provider]
      kind = "openai"
      api_key = "k"
      model = "big"
      [agents.support]
      system_prompt = "You answer customers."
      tools = ["file_read"]
      workspace = "help"
      provider = { model = "small" }
      policy = { level = "readonly", always_ask = ["*"] }
    `)
    const { main, support } = Object.fromEntries(configuredAgents(config, dataDir))
    expect(support).toEqual({
      name: 'support',
      agent: { ...main?.agent, system_prompt: 'You answer customers.' },
      provider: { ...main?.provider, model: 'small' },
      policy: { ...main?.policy, shell: 'plain', level: 'readonly', always_ask: ['*'] },
      tools: ['file_read'],
      workspace: join(dataDir, 'help'),
    })
  })

  test('has none of the identity files that are accepted for the main agent', async () => {
    const [all, own] = ['a'.repeat(64), 'b'.repeat(64)]
    const config = await load(`[agent]\nidentity_sha256 = ["${all}"]\n[agents.x]\n[agents.y]\nidentity_sha256 = ["${own}"]`)
    const agents = [...configuredAgents(config, dataDir).values()]
    expect(agents.map(({ agent }) => agent.identity_sha256)).toEqual([[all], [], [own]])
  })

  test('with an endpoint of its own gets no key and no header of another endpoint', async () => {
    const config = await load(`
      [provider]
      kind = "openai"
      api_key = "k"
      headers = { x = "y" }
      fallback = [{ kind = "ollama" }]
      [agents.support.provider]
      kind = "anthropic"
    `)
    expect(configuredAgents(config, dataDir).get('support')?.provider).toEqual({ kind: 'anthropic', fallback: [] })
  })
})

describe('the configuration refuses', () => {
  test.each([
    ['[agents.main]\n', '1:2 `agents.main`: main is the default agent, which [agent], [provider] and [security.policy] configure'],
    ['[agents.Support]\n', '1:2 `agents.Support`: the name of an agent has 1 to 32 characters of a-z 0-9 -'],
    ['[agents.a]\nmax_iterations = 0\n', expect.stringContaining('agents.a.max_iterations')],
    ['[agents.a]\npromt = "x"\n', '2:1 `agents.a.promt` is not a known key'],
    ['[agents.a.policy]\nlevle = "full"\n', '2:1 `agents.a.policy.levle` is not a known key; did you mean `level`?'],
    [
      '[agents.a]\nprovider = { api_key = "k" }\n',
      '2:12 `agents.a.provider`: api_key is set without kind: set kind in the same table, to openai, anthropic or another kind',
    ],
    [
      '[agents.support]\n[channels_config.roomchat]\nagent = "suport"\n',
      '3:9 `channels_config.roomchat.agent`: there is no agent "suport"; did you mean "support"? The agents are main, support. [agents.<name>] adds one',
    ],
    [
      '[channels_config.roomchat.room_agents]\n"!r" = "x"\n',
      '2:8 `channels_config.roomchat.room_agents."!r"`: there is no agent "x". The agents are main. [agents.<name>] adds one',
    ],
    [
      '[channels_config.mqtt]\nagent = "main"\n',
      '2:1 `channels_config.mqtt.agent` is not a known key; [channels_config.roomchat] has a key of that name',
    ],
  ])('%s', async (text, problem) => {
    expect(await problems(text)).toEqual([problem])
  })

  test('workspaces of which one is in another, also by a link', async () => {
    mkdirSync(join(dataDir, 'real'))
    symlinkSync(join(dataDir, 'real'), join(dataDir, 'link'))
    const apart = "so the two could read each other's files; set it to another folder"
    expect(await problems('[agents.a]\nworkspace = "workspace"\n')).toEqual([
      `2:13 \`agents.a.workspace\` ${dataDir}/workspace is also the workspace of agent main, ${apart}`,
    ])
    expect(await problems('[agents.a]\nworkspace = "x"\n[agents.b]\nworkspace = "x/y"\n')).toEqual([
      `4:13 \`agents.b.workspace\` ${dataDir}/x/y is inside the workspace of agent a, ${apart}`,
    ])
    expect(await problems('[agents.a]\nworkspace = "real/below"\n[agents.b]\nworkspace = "link"\n')).toEqual([
      `4:13 \`agents.b.workspace\` ${dataDir}/link contains the workspace of agent a, ${apart}`,
    ])
    expect(await problems(`[agent]\nworkspace = "${dataDir}"\n[agents.a]\n`)).toEqual([
      `3:2 \`agents.a.workspace\` ${dataDir}/workspaces/a is inside the workspace of agent main, ${apart}`,
    ])
  })

  test('a workspace that is a file', async () => {
    writeFileSync(join(dataDir, 'file'), '')
    expect(await problems('[agents.a]\nworkspace = "file"\n')).toEqual([
      `2:13 \`agents.a.workspace\` must be a folder, but ${dataDir}/file is a file`,
    ])
  })
})

describe('a channel', () => {
  const at = (channel: string, account: string, conversation: string) => ({ channel, account, conversation })

  test.each([
    ['', 'main'],
    ['agent = "channel"', 'channel'],
    ['agent = "channel"\naccount_agents = { A = "account" }', 'account'],
    ['agent = "channel"\naccount_agents = { A = "account" }\nroom_agents = { R = "room" }', 'room'],
    ['room_agents = { R = "room", A = "account" }', 'room'],
    ['agent = "channel"\naccount_agents = { R = "account", B = "room" }\nroom_agents = { A = "room" }', 'channel'],
    ['agent = "channel"\nroom_agents = { R = "main" }', 'main'],
  ])('with %s is answered by the agent %s', async (keys, agent) => {
    const config = await load(`[agents]\nchannel = {}\naccount = {}\nroom = {}\n[channels_config.roomchat]\n${keys}\n`)
    const agentOf = agentsOfChats(() => config)
    expect(agentOf(at('roomchat', 'A', 'R'))).toBe(agent)
    expect(agentOf(at('other', 'A', 'R'))).toBe('main')
    for (const name of ['constructor', '__proto__', 'toString']) expect(agentOf(at('roomchat', name, name))).not.toBeTypeOf('function')
  })

  test('is answered by the agent of the configuration in force', async () => {
    const sections = '[agents]\nfirst = {}\nsecond = {}\n[channels_config.roomchat]\n'
    let config = await load(`${sections}agent = "first"\n`)
    const agentOf = agentsOfChats(() => config)
    const chat = at('roomchat', 'A', 'R')
    expect([agentOf(chat), agentOf(chat)]).toEqual(['first', 'first'])
    config = await load(`${sections}agent = "first"\nroom_agents = { R = "second" }\n`)
    expect([agentOf(chat), agentOf(at('roomchat', 'A', 'S'))]).toEqual(['second', 'first'])
    config = await load('')
    expect(agentOf(chat)).toBe('main')
  })

  test('that names an agent is not built again, and its header alone still configures it', async () => {
    const [plain, routed] = await Promise.all([
      load('[channels_config.roomchat]\n'),
      load('[agents.a]\n[channels_config.roomchat]\nagent = "a"\n'),
    ])
    expect(plain.of('channel-roomchat').state).toBe('configured')
    expect(routed.hash('channel-roomchat', 'channels_config.roomchat')).toBe(plain.hash('channel-roomchat', 'channels_config.roomchat'))
  })
})

test('the reference and the JSON Schema list the keys of an agent', async () => {
  const sections = sectionsOf(features)
  const rows = configReference(sections).filter(({ section }) => section.startsWith('agents'))
  expect(rows.map(({ section, key }) => `${section} ${key}`)).toContain('agents.<name> policy.level')
  expect(rows.find(({ key }) => key === 'provider.api_key')).toMatchObject({ secret: true, env: [] })
  expect(await configSchema(sections)).toMatchObject({
    properties: {
      agents: {
        additionalProperties: {
          properties: { tools: { type: 'array' }, policy: { properties: { level: {} } } },
          additionalProperties: false,
        },
      },
    },
  })
})

test('a change that names an unknown agent is not saved', async () => {
  const configFile = join(dataDir, 'set.toml')
  const source = { configFile, dataDir, features, env: {} }
  writeFileSync(configFile, '[agents.support]\n')
  await setConfig(source, [{ path: 'channels_config.roomchat.agent', value: 'support' }])
  const saved = readFileSync(configFile, 'utf8')
  await expect(setConfig(source, [{ path: 'channels_config.roomchat.agent', value: 'suport' }])).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('did you mean "support"?'),
  })
  expect(readFileSync(configFile, 'utf8')).toBe(saved)
})
