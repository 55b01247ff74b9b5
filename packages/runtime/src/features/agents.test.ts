import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from '@sluice/config'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAgents } from './agents.ts'

let base: string
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'agents-'))
})
afterAll(() => rmSync(base, { recursive: true }))

async function agentsOf(text: string) {
  const dataDir = join(base, 'data')
  const configFile = join(dataDir, 'config.toml')
  return createAgents(await parseConfig({ configFile, dataDir, features: [], env: {} }, text), { dataDir, configFile })
}

test('no agent may touch the files of the daemon or the workspace of another agent', async () => {
  const agents = await agentsOf(`[agents.a]\nworkspace = "${base}/a"\n[agents.b]\npolicy = { forbidden_paths = ["secret"] }\n`)
  const forbidden = Object.fromEntries([...agents].map(([name, { policy }]) => [name, policy.forbidden_paths]))
  const [data, ofMain, ofA, ofB] = ['data', 'data/workspace', 'a', 'data/workspaces/b'].map((path) => join(base, path))
  for (const paths of Object.values(forbidden)) expect(paths).toContain(data)
  expect(forbidden.main).toEqual(expect.arrayContaining([ofA, ofB, '~/.ssh']))
  expect(forbidden.main).not.toContain(ofMain)
  expect(forbidden.b).toEqual(expect.arrayContaining(['secret', ofMain, ofA]))
  expect(forbidden.b).not.toContain('~/.ssh')
})

test('each agent reads and writes in its own workspace only', async () => {
  const agents = await agentsOf(`[agents.a]\nworkspace = "${base}/a"\n[agents.b]\n`)
  for (const [name, { workspace }] of agents) await workspace.write('own.txt', Buffer.from(name))
  for (const [name, { workspace }] of agents) {
    expect(Buffer.from(await workspace.read('own.txt', { bytesMax: 10 })).toString()).toBe(name)
    for (const [other, { workspace: elsewhere }] of agents) {
      if (other === name) continue
      const path = join(elsewhere.root, 'own.txt')
      await expect(workspace.read(path, { bytesMax: 10 }), `${name} reads ${other}`).rejects.toMatchObject({ code: 'forbidden' })
      await expect(workspace.write(path, Buffer.from('x')), `${name} writes ${other}`).rejects.toMatchObject({ code: 'forbidden' })
    }
  }
})

test('without other agents, the main agent has exactly what its sections say', async () => {
  const agents = await agentsOf('[agent]\nsystem_prompt = "Hi."\n')
  expect([...agents.keys()]).toEqual(['main'])
  expect(agents.get('main')).toMatchObject({
    tools: undefined,
    agent: { system_prompt: 'Hi.' },
    workspace: { root: join(base, 'data/workspace') },
  })
})
