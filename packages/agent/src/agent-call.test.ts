import { AppError, defineTool, type Risk, Secret } from '@sluice/sdk'
import { until } from '@sluice/testkit/until'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { client, type TestAgentOptions, testAgent, testTool } from './testing/test-agent.ts'
import { callHash } from './tools/shown-call.ts'
import { newTrace } from './turn/ids.ts'
import type { CallRequest, ToolApprovalRequest } from './turn/turn.ts'

const callRequest = (tool: string, input: unknown = {}, more: Partial<CallRequest> = {}): CallRequest => ({
  tool,
  input,
  turn: 'run-1',
  callId: 'step-2',
  source: 'sop',
  client,
  standing: 'operator',
  trace: newTrace(),
  signal: new AbortController().signal,
  ...more,
})

const call = (options: TestAgentOptions, request: CallRequest) => testAgent(options).agent.call(request)

test('a tool runs outside of a turn with events and context, and stores nothing', async () => {
  let given: unknown
  const look = defineTool({
    name: 'look',
    description: '',
    input: v.object({ key: v.string() }),
    risk: 'read',
    egress: false,
    untrusted: false,
    run: async ({ key }, context) => {
      given = context
      return `saw ${key}`
    },
  })
  const { agent, books, events, observations, leased } = testAgent({ tools: [look] })
  const request = callRequest('look', { key: 'a' })
  await expect(agent.call(request)).resolves.toEqual({ outcome: 'ok', output: 'saw a' })
  expect(given).toMatchObject({ client, session: null, turn: 'run-1', trace: { traceId: request.trace.traceId } })
  expect(events).toMatchObject([
    { type: 'tool_started', turn_id: 'run-1', session_id: null, tool: 'look' },
    { type: 'tool_completed', turn_id: 'run-1', tool: 'look', outcome: 'ok' },
  ])
  expect(observations).toMatchObject([{ kind: 'tool_call', outcome: 'ok', span: { trace: { parentId: request.trace.spanId } } }])
  expect(books.writes).toEqual([])
  expect(leased()).toBe(0)
})

test('a call that cannot run is an error result', async () => {
  const tools = [
    testTool('look', () => 'ran'),
    testTool('change', () => 'ran', 'write'),
    testTool('refuses', () => {
      throw new AppError('forbidden', 'Not that file')
    }),
  ]
  const options = { tools, policy: { level: 'readonly' } } as const
  expect(await call(options, callRequest('lok'))).toEqual({ outcome: 'error', output: expect.stringContaining('There is no tool "lok"') })
  expect((await call(options, callRequest('look', { key: 1 }))).output).toContain('is not valid')
  expect((await call(options, callRequest('change'))).output).toContain('level = "readonly"')
  expect(await call(options, callRequest('refuses'))).toEqual({ outcome: 'error', output: 'Not that file' })
})

test('a result is scrubbed and shortened', async () => {
  const secret = new Secret('the operator’s own value')
  const look = testTool('look', () => `${secret.reveal()} ${'x'.repeat(1000)}`)
  const { output } = await call({ tools: [look], secrets: () => [secret], agent: { max_tool_result_chars: 100 } }, callRequest('look'))
  expect(output).toMatch(/^\[redacted\] x/)
  expect(output).toContain('characters left out')
})

test('reported data is scrubbed and shortened, too', async () => {
  const secret = new Secret('the operator’s own value')
  const look = defineTool({
    name: 'look',
    description: '',
    input: v.object({}),
    risk: 'read',
    egress: false,
    untrusted: false,
    async run(_input, { report }) {
      report?.({ failed: true, data: `${secret.reveal()} ${'x'.repeat(1000)}` })
      return 'said'
    },
  })
  const result = await call({ tools: [look], secrets: () => [secret], agent: { max_tool_result_chars: 100 } }, callRequest('look'))
  expect(result).toMatchObject({ outcome: 'ok', output: 'said', failed: true })
  expect(result.data).toMatch(/^\[redacted\] x+\n.*characters left out/)
})

test('a person is asked with the turn and id of the call', async () => {
  const asked: ToolApprovalRequest[] = []
  const given: unknown[] = []
  const reach = { ...testTool('reach', () => '', 'execute'), run: async (_: unknown, context: object) => `ran ${given.push(context)}` }
  const answers = [{ by: 'roomchat:alice', standing: 'operator' as const }, false] as const
  const { agent } = testAgent({
    tools: [reach],
    approve: async (question) => answers[asked.push(question) - 1] ?? false,
  })
  await expect(agent.call(callRequest('reach', { key: 'a' }))).resolves.toMatchObject({ outcome: 'ok' })
  await expect(agent.call(callRequest('reach', { key: 'a' }))).resolves.toMatchObject({ outcome: 'error' })
  expect(asked[0]).toEqual({
    callId: 'step-2',
    tool: 'reach',
    summary: 'key: a',
    callHash: callHash('reach', { key: 'a' }),
    decider: 'asker',
    standing: 'operator',
    sources: [],
    agent: 'main',
    turn: 'run-1',
    session: null,
    inbox: null,
  })
  expect(given).toMatchObject([{ approvedBy: 'roomchat:alice' }])
})

test('the caller gets the risk right before the run, and a rejection prevents it', async () => {
  const order: string[] = []
  const tools = [testTool('reach', () => `${order.push('ran')}`, 'execute'), testTool('look', () => `${order.push('ran')}`)]
  const approve = async () => {
    order.push('asked')
    return { by: 'somebody', standing: 'operator' as const }
  }
  const onBegin = async (risk: Risk) => void order.push(risk)
  await call({ tools, approve }, callRequest('reach', {}, { onBegin }))
  await call({ tools, approve }, callRequest('look', {}, { onBegin }))
  await call({ tools }, callRequest('reach', {}, { onBegin }))
  expect(order.splice(0)).toEqual(['asked', 'execute', 'ran', 'read', 'ran'])
  const full = new AppError('unavailable', 'The disk is full')
  await expect(call({ tools }, callRequest('look', {}, { onBegin: () => Promise.reject(full) }))).rejects.toBe(full)
  expect(order).toEqual([])
})

test('an abort ends a call before and during its run', async () => {
  const { agent, leased } = testAgent({ tools: [testTool('slow', () => new Promise(() => undefined))] })
  await expect(agent.call(callRequest('slow', {}, { signal: AbortSignal.abort() }))).rejects.toMatchObject({ code: 'aborted' })
  const caller = new AbortController()
  const running = expect(agent.call(callRequest('slow', {}, { signal: caller.signal }))).rejects.toMatchObject({ code: 'aborted' })
  caller.abort()
  await running
  expect(leased()).toBe(0)
})

test('a call ends after turn_timeout_secs, without the time of approvals', async () => {
  const { promise: answer, resolve } = Promise.withResolvers<{ by: string; standing: 'operator' }>()
  let runs = 0
  const slow = testTool('slow', () => new Promise(() => void runs++), 'execute')
  const { agent, clock } = testAgent({ tools: [slow], approve: () => answer, agent: { turn_timeout_secs: 30 } })
  const result = agent.call(callRequest('slow'))
  let isOver = false
  void result.then(() => {
    isOver = true
  })
  await clock.advance(3_600_000)
  resolve({ by: 'somebody', standing: 'operator' as const })
  await until(() => runs === 1)
  await clock.advance(29_999)
  expect(isOver).toBe(false)
  await clock.advance(1)
  await expect(result).resolves.toEqual({ outcome: 'error', output: expect.stringContaining('may or may not have taken effect') })
})
