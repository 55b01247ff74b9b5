import { expect, test } from 'vitest'
import { hang, httpError, scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent, testTool } from '../testing/test-agent.ts'
import { noteStep, STEPS_MAX } from './turn-steps.ts'

test('the end of a turn has its model calls and tool calls, also failed ones, in one write', async () => {
  const model = scriptedModel([
    { calls: [{ name: 'look', input: {} }], usage: { input: 10, output: 5 } },
    { text: 'done', usage: { input: 20, output: 6 } },
  ])
  const { agent, books } = testAgent({ models: [scriptedModel([httpError(400)]), model], tools: [testTool('look', () => 'seen')] })
  await agent.run(request('hello', { session: 's1' }))
  const [end] = books.ends
  expect(end?.steps).toMatchObject([
    { kind: 'model', name: 'scripted:scripted-1', outcome: 'error', error: expect.stringContaining('400') },
    { kind: 'model', outcome: 'ok', finish: 'tool-calls', inputTokens: 10, outputTokens: 5 },
    { kind: 'tool', name: 'look', outcome: 'ok' },
    { kind: 'model', outcome: 'ok', finish: 'stop', inputTokens: 20, outputTokens: 6 },
  ])
  expect(books.writes.filter((write) => write.startsWith('finish'))).toHaveLength(1)
  expect(JSON.stringify(end?.steps)).not.toContain('hello')
})

test('the built-in model leaves no step', async () => {
  const labels = [{ provider: 'offline', model: 'echo' }]
  const { agent, books } = testAgent({ models: [scriptedModel([{ text: 'hi' }])], labels })
  await agent.run(request('hello'))
  expect(books.ends[0]?.steps).toEqual([])
})

test('a running turn shows the steps that it has taken, and an aborted call', async () => {
  const aborted = new AbortController()
  const { agent, books } = testAgent({
    models: [scriptedModel([{ calls: [{ name: 'look', input: {} }] }, () => hang()])],
    tools: [testTool('look', () => 'seen')],
  })
  const turn = agent.run(request('hello', { session: 's1', owner: 'device', signal: aborted.signal }))
  await expect.poll(() => agent.live()[0]?.steps.length).toBe(2)
  expect(agent.live()).toMatchObject([
    { id: 'turn-1', status: 'running', isAsking: false, owner: 'device', sessionId: 's1', endedAtMs: null },
  ])
  aborted.abort()
  await expect(turn).rejects.toMatchObject({ code: 'aborted' })
  expect(books.ends[0]?.steps?.at(-1)).toMatchObject({ kind: 'model', outcome: 'aborted' })
  expect(agent.live()).toEqual([])
})

test('only the newest steps are kept, with the beginning of their errors', () => {
  const steps: Parameters<typeof noteStep>[0] = []
  for (let at = 0; at < STEPS_MAX + 5; at++)
    noteStep(steps, { kind: 'model', name: 'm', atMs: at, tookMs: 0, outcome: 'error', error: 'e'.repeat(1000) })
  expect(steps).toHaveLength(STEPS_MAX)
  expect(steps[0]?.atMs).toBe(5)
  expect(steps[0]?.error).toHaveLength(300)
})
