/** Two agents in one daemon: each call obeys the limits of its own agent, whatever the way it is made. */
import { agentSection, costSection, policySection } from '@sluice/config'
import { defineTool, type Policy, type ToolContext } from '@sluice/sdk'
import { openPolicy } from '@sluice/testkit/host'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { until } from '@sluice/testkit/until'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { memoryBooks } from './testing/memory-books.ts'
import { scriptedModel } from './testing/scripted-model.ts'
import { request, resultsIn, type TestAgentOptions, testAgent } from './testing/test-agent.ts'
import type { AgentSettings } from './turn/agent-settings.ts'

const SUPPORT = 'agent:support/device/room'
const MAIN = 'device/room'
const CLOSED: Policy = v.parse(policySection.schema, { level: 'readonly' })

const settings = (limits: Partial<AgentSettings> = {}): AgentSettings => ({
  agent: v.parse(agentSection.schema, {}),
  cost: v.parse(costSection.schema, {}),
  policy: openPolicy,
  tools: undefined,
  workspace: memoryWorkspace({}, '/support'),
  ...limits,
})

/** An agent whose model calls `reach` and `look` once, and which records the context of each call. */
function arrange(options: TestAgentOptions = {}, others: Record<string, AgentSettings> = { support: settings() }) {
  const calls: ToolContext[] = []
  const tool = (name: string, risk: 'read' | 'execute') =>
    defineTool({
      name,
      description: name,
      input: v.object({}),
      risk,
      egress: false,
      untrusted: false,
      async run(_, context) {
        calls.push(context)
        return `${name} ran`
      },
    })
  const results: string[] = []
  const model = scriptedModel([
    ({ prompt }) => {
      const done = resultsIn(prompt)
      results.push(...done)
      return done.length > 0 ? { text: 'done' } : { calls: ['reach', 'look'].map((name) => ({ name, input: {} })) }
    },
  ])
  const bench = testAgent({ tools: [tool('reach', 'execute'), tool('look', 'read')], models: [model], others: () => others, ...options })
  return { ...bench, calls, results, model, others }
}

describe('a tool that one agent may call', () => {
  test.each([
    ['main', MAIN, {}, { support: settings({ policy: CLOSED }) }, ['reach ran', 'look ran']],
    [
      'support',
      SUPPORT,
      {},
      { support: settings({ policy: CLOSED }) },
      [expect.stringContaining('[agents.support.policy] level'), 'look ran'],
    ],
    ['main', MAIN, { policy: CLOSED }, { support: settings() }, [expect.stringContaining('[security.policy] level'), 'look ran']],
    ['support', SUPPORT, { policy: CLOSED }, { support: settings() }, ['reach ran', 'look ran']],
    ['main', MAIN, {}, { support: settings({ tools: ['look'] }) }, ['reach ran', 'look ran']],
    [
      'support',
      SUPPORT,
      {},
      { support: settings({ tools: ['look'] }) },
      ['Not run: reach may not be called here. Allowed tools: look.', 'look ran'],
    ],
  ])('is judged by the limits of %s in a turn of its own (%#)', async (_agent, session, options, others, expected) => {
    const { agent, results } = arrange({ policy: openPolicy, ...options }, others)
    await agent.run(request('go', { session }))
    expect(results).toEqual(expected)
  })

  test('is not offered to the other one', async () => {
    const { agent, model } = arrange(
      {},
      { support: settings({ tools: ['look'], agent: { ...settings().agent, system_prompt: 'Support.' } }) },
    )
    await agent.run(request('go', { session: SUPPORT }))
    expect(model.asked[0]?.tools?.map(({ name }) => name)).toEqual(['look'])
    expect(JSON.stringify(model.asked[0]?.prompt[0])).toContain('Support.')
  })

  test('is refused to the other one outside of a turn, as steps of procedures call it', async () => {
    const { agent, calls } = arrange({ policy: openPolicy }, { support: settings({ policy: CLOSED }) })
    const { client, trace } = request('')
    const call = (name?: string) =>
      agent.call({
        tool: 'reach',
        input: {},
        turn: 'run',
        callId: 'c',
        source: 'sop',
        client,
        caller: 'sop:x',
        standing: 'operator',
        trace,
        signal: new AbortController().signal,
        ...(name !== undefined && { agent: name }),
      })
    expect(await call()).toMatchObject({ outcome: 'ok' })
    expect(await call('support')).toMatchObject({ outcome: 'error', output: expect.stringContaining('[agents.support.policy]') })
    expect(await call('gone')).toMatchObject({ outcome: 'error', output: expect.stringContaining('Agent "gone" was removed') })
    expect(calls.map(({ agent: by }) => by)).toEqual(['main'])
  })

  test('is refused to the other one after an approval whose turn a crash interrupted', async () => {
    const others = { support: settings({ policy: v.parse(policySection.schema, {}) }) }
    const books = memoryBooks()
    const asked: string[] = []
    const first = arrange({ books, policy: openPolicy, approve: () => new Promise(() => asked.push('asked')) }, others)
    await first.agent.accept(request('go', { session: SUPPORT }))
    await until(() => asked.length > 0)
    // The process is killed here; meanwhile the operator takes the tool away from this agent only.
    const next = arrange(
      { books, policy: openPolicy, approve: async () => ({ by: 'cli:me', standing: 'operator' as const }) },
      { support: settings({ tools: ['look'] }) },
    )
    expect(await next.resume()).toBe(1)
    await until(() => books.ends.length > 0)
    expect(books.ends).toMatchObject([{ agent: 'support', sessionId: SUPPORT, status: 'done' }])
    expect(next.calls.map(({ agent }) => agent)).not.toContain('main')
    expect(next.results[0]).toContain('reach')
    expect(next.results[0]).not.toBe('reach ran')
  })

  test('is refused once the tool was taken away while a person was asked', async () => {
    const others: Record<string, AgentSettings> = { support: settings({ policy: v.parse(policySection.schema, {}) }) }
    const approve = async () => {
      others.support = settings({ tools: ['look'] })
      return { by: 'cli:me', standing: 'operator' as const }
    }
    const { agent, results } = arrange({ approve }, others)
    await agent.run(request('go', { session: SUPPORT }))
    expect(results).toEqual(['Not run: reach may not be called here. Allowed tools: look.', 'look ran'])
  })
})

test('tools get the limits, the workspace and an identity of the agent that calls', async () => {
  const { agent, calls, others } = arrange({ policy: openPolicy })
  for (const session of [MAIN, SUPPORT]) await agent.run(request('go', { session, caller: 'device:a' }))
  await agent.run(request('go', { agent: 'support' }))
  const [main, , support, , alone] = calls
  expect(main).toMatchObject({ agent: 'main', caller: 'device:a', client: 'client-1', workspace: { root: '/workspace' } })
  expect(support).toMatchObject({
    agent: 'support',
    caller: 'agent:support/device:a',
    policy: others.support?.policy,
    workspace: { root: '/support' },
  })
  expect(support?.client).not.toBe(main?.client)
  expect(alone).toMatchObject({ agent: 'support', session: null, caller: 'agent:support/owner' })
})

test('a turn stays in the workspace that it began in, under the policy of now', async () => {
  const others: Record<string, AgentSettings> = { support: settings({ policy: v.parse(policySection.schema, {}) }) }
  const approve = async () => {
    others.support = settings({ workspace: memoryWorkspace({}, '/moved'), policy: { ...openPolicy, always_ask: ['look'] } })
    return { by: 'cli:me', standing: 'operator' as const }
  }
  const { agent, calls } = arrange({ approve }, others)
  await agent.run(request('go', { session: SUPPORT }))
  expect(calls.map(({ workspace, policy }) => [workspace.root, policy.always_ask])).toEqual([
    ['/support', ['look']],
    ['/support', ['look']],
  ])
})

test('a turn of an agent that is not configured fails before it asks a model', async () => {
  const { agent, model, books } = arrange({}, {})
  await expect(agent.run(request('go', { session: SUPPORT }))).rejects.toMatchObject({
    code: 'unavailable',
    message: 'Agent "support" was removed from the configuration. Add [agents.support] to continue.',
  })
  expect(model.asked).toEqual([])
  expect(books.ends).toMatchObject([{ agent: 'support', status: 'failed' }])
})

test('a turn whose agent is removed meanwhile calls no more tools', async () => {
  const others: Record<string, AgentSettings> = { support: settings({ policy: v.parse(policySection.schema, {}) }) }
  const approve = async () => {
    delete others.support
    return { by: 'cli:me', standing: 'operator' as const }
  }
  const { agent, calls, results } = arrange({ approve }, others)
  await agent.run(request('go', { session: SUPPORT }))
  expect(calls).toEqual([])
  expect(results[0]).toContain('Agent "support" was removed')
})

test('a turn without a session is resumed by its agent', async () => {
  const books = memoryBooks()
  const others = { support: settings({ policy: CLOSED }) }
  const first = arrange({ books, policy: openPolicy, models: [scriptedModel([() => new Promise(() => undefined)])] }, others)
  await first.agent.accept(request('go', { agent: 'support' }))
  const next = arrange({ books, policy: openPolicy }, others)
  expect(await next.resume()).toBe(1)
  await until(() => books.ends.length > 0)
  expect(books.ends).toMatchObject([{ agent: 'support', sessionId: null, status: 'done' }])
  expect(next.results[0]).toContain('[agents.support.policy]')
})

test.each([
  ['main', MAIN, undefined],
  ['support', SUPPORT, 'support'],
])('the events of a turn and its calls name the agent unless it is main: %s', async (_, session, agent) => {
  const { agent: bench, events } = arrange()
  await bench.run(request('hello', { session }))
  expect(events.map(({ type }) => type)).toEqual([
    'turn_started',
    ...Array(2).fill(['tool_started', 'tool_completed']).flat(),
    'turn_completed',
  ])
  for (const event of events) expect('agent' in event ? event.agent : undefined).toBe(agent)
})
