import { AppError, type ModelMessage } from '@sluice/sdk'
import type { TestClock } from '@sluice/testkit/clock'
import { until } from '@sluice/testkit/until'
import { expect, test } from 'vitest'
import { hang, httpError, type Reply, scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent, testTool } from '../testing/test-agent.ts'
import type { TurnPart } from '../turn/turn.ts'

const echo = () => scriptedModel([(options) => ({ text: `heard ${lastText(options.prompt)}`, usage: { input: 10, output: 5 } })])
const lastText = (prompt: readonly ModelMessage[]): string => {
  const part = prompt.at(-1)?.content[0]
  return typeof part === 'object' && part.type === 'text' ? part.text : ''
}
const turns = () => new Promise((resolve) => setImmediate(resolve))

/** A model whose replies the test gives by the text that they answer. */
function gatedModel() {
  const waiting = new Map<string, (reply: Reply) => void>()
  const order: string[] = []
  const model = scriptedModel([
    ({ prompt }) => {
      const text = lastText(prompt)
      order.push(text)
      return new Promise<Reply>((resolve) => waiting.set(text, resolve))
    },
  ])
  const answer = async (text: string) => {
    waiting.get(text)?.({ text: `to ${text}` })
    await turns()
  }
  return { model, order, answer }
}

test('a turn ends in one commit with messages, cost and idempotency key', async () => {
  const { agent, books, leased } = testAgent({ models: [echo()], cost: { prices: { 'scripted-1': { input: 1, output: 2 } } } })
  const idempotency = { scope: 'webhook', key: 'k1' }
  const result = await agent.run(request('hello', { session: 's1', idempotency }))
  expect(result).toEqual({
    id: 'turn-1',
    text: 'heard hello',
    model: 'scripted-1',
    finishReason: 'stop',
    usage: { inputTokens: 10, outputTokens: 5, costUsd: 0.00002 },
    replies: [],
  })
  expect(books.writes).toEqual(['enqueue turn-1', 'start turn-1', 'finish turn-1'])
  expect(books.ends).toEqual([
    expect.objectContaining({
      id: 'turn-1',
      sessionId: 's1',
      source: 'test',
      status: 'done',
      input: 'hello',
      response: 'heard hello',
      model: 'scripted-1',
      error: null,
      inputTokens: 10,
      outputTokens: 5,
      costUsd: 0.00002,
      attempts: 1,
      idempotency,
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hello' }] },
        { role: 'assistant', content: [{ type: 'text', text: 'heard hello' }] },
      ],
    }),
  ])
  expect(leased()).toBe(0)
  expect(agent.load()).toEqual({ running: 0, queued: 0, sessions: 0 })
})

test('a session continues; a turn without one has no history', async () => {
  const model = echo()
  const { agent } = testAgent({ models: [model], prompt: 'A line of a feature.' })
  await agent.run(request('one', { session: 's' }))
  await agent.run(request('two', { session: 's' }))
  await agent.run(request('three'))
  expect(model.asked.map(({ prompt }) => prompt.map(({ role }) => role).join(' '))).toEqual([
    'system user',
    'system user assistant user',
    'system user',
  ])
  expect(model.asked[0]?.prompt[0]?.content).toContain('A line of a feature.')
})

test('turns of one session run in order, and other sessions in parallel', async () => {
  const { model, order, answer } = gatedModel()
  const { agent } = testAgent({ models: [model] })
  const results = [
    agent.run(request('a1', { session: 'a' })),
    agent.run(request('a2', { session: 'a' })),
    agent.run(request('b1', { session: 'b' })),
  ]
  await turns()
  expect(order).toEqual(['a1', 'b1'])
  await answer('a1')
  expect(order).toEqual(['a1', 'b1', 'a2'])
  await answer('a2')
  await answer('b1')
  expect((await Promise.all(results)).map(({ text }) => text)).toEqual(['to a1', 'to a2', 'to b1'])
})

test('limits running turns, and refuses turns beyond max_queued_turns with their key released', async () => {
  const { model, order, answer } = gatedModel()
  const { agent, books } = testAgent({ models: [model], agent: { max_concurrent_turns: 2, max_queued_turns: 1 } })
  const results = ['a', 'b', 'c'].map((text) => agent.run(request(text)))
  await turns()
  expect(order).toEqual(['a', 'b'])
  expect(agent.load()).toEqual({ running: 2, queued: 1, sessions: 0 })
  const refused = agent.run(request('d', { idempotency: { scope: 's', key: 'd' } }))
  await expect(refused).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: 5 })
  await expect(agent.accept(request('e', { idempotency: { scope: 's', key: 'e' } }))).rejects.toMatchObject({ code: 'unavailable' })
  expect(books.released).toEqual(['d', 'e'])
  expect(books.writes).toEqual([])
  for (const text of ['a', 'b', 'c']) await answer(text)
  await Promise.all(results)
})

test('a turn that can start at once is accepted by a full queue', async () => {
  const { model, order, answer } = gatedModel()
  const { agent } = testAgent({ models: [model], agent: { max_concurrent_turns: 1, max_queued_turns: 0 } })
  const first = agent.run(request('a', { session: 's' }))
  await turns()
  await expect(agent.run(request('b', { session: 's' }))).rejects.toMatchObject({ code: 'unavailable' })
  await expect(agent.run(request('c'))).rejects.toMatchObject({ code: 'unavailable' })
  await answer('a')
  await first
  expect(order).toEqual(['a'])
})

test("a turn with its caller's permit runs at once and counts once", async () => {
  const { model, order, answer } = gatedModel()
  const { agent, lanes } = testAgent({ models: [model], agent: { max_concurrent_turns: 1, max_queued_turns: 0 } })
  const ended: string[] = []
  for (const text of ['message', 'next message'])
    lanes.enter({
      lane: 's',
      group: 'messages',
      async run({ permit }) {
        ended.push((await agent.run(request(text, { session: 's', permit }))).text)
        return 'done'
      },
    })
  await turns()
  expect(order).toEqual(['message'])
  expect(agent.load()).toEqual({ running: 1, queued: 0, sessions: 1 })
  expect(lanes.load).toEqual({ running: 1, waiting: 1, reacquiring: 0 })
  const limited = { client: 'device:ann', standing: 'listed' } as const
  await expect(agent.run(request('turn', { limited }))).rejects.toMatchObject({ code: 'unavailable' })
  await answer('message')
  await turns()
  await answer('next message')
  expect(ended).toEqual(['to message', 'to next message'])
})

test('an aborted waiting turn never runs and is recorded as aborted', async () => {
  const { model, order, answer } = gatedModel()
  const { agent, books, events } = testAgent({ models: [model] })
  const first = agent.run(request('a1', { session: 'a' }))
  const caller = new AbortController()
  const second = agent.run(request('a2', { session: 'a', signal: caller.signal }))
  const third = agent.run(request('a3', { session: 'a' }))
  await turns()
  caller.abort()
  await expect(second).rejects.toMatchObject({ code: 'aborted', fields: { turn_id: 'turn-2' } })
  expect(agent.abort('turn-3', 'somebody else')).toBe(false)
  expect(agent.abort('turn-3', 'owner')).toBe(true)
  await expect(third).rejects.toMatchObject({ code: 'aborted' })
  await answer('a1')
  await first
  expect(order).toEqual(['a1'])
  expect(books.ends.map(({ id, status }) => `${id} ${status}`)).toEqual(['turn-2 aborted', 'turn-3 aborted', 'turn-1 done'])
  expect(events.filter(({ type }) => type === 'turn_failed')).toMatchObject([{ code: 'aborted' }, { code: 'aborted' }])
  expect(agent.load().queued).toBe(0)
})

test('a running turn is aborted at once, also when its model ignores the signal', async () => {
  const { agent, books } = testAgent({ models: [scriptedModel([hang, { text: 'next' }])] })
  const caller = new AbortController()
  const stuck = agent.run(request('a', { session: 's', signal: caller.signal }))
  const next = agent.run(request('b', { session: 's' }))
  await turns()
  caller.abort()
  await expect(stuck).rejects.toMatchObject({ code: 'aborted' })
  await expect(next).resolves.toMatchObject({ text: 'next' })
  expect(books.ends.map(({ status }) => status)).toEqual(['aborted', 'done'])
  expect(agent.abort('turn-1', 'owner')).toBe(false)
})

test('a caller that disconnects before its turn begins only releases its key', async () => {
  const { agent, books } = testAgent({ models: [echo()] })
  const turn = agent.run(request('a', { signal: AbortSignal.abort(), idempotency: { scope: 's', key: 'k' } }))
  await expect(turn).rejects.toMatchObject({ code: 'aborted' })
  expect(books.released).toEqual(['k'])
  expect(books.writes).toEqual([])
})

test('turn_timeout_secs ends a turn in any wait', async () => {
  const slow = testTool('slow', () => new Promise(() => undefined))
  const model = scriptedModel([{ calls: [{ name: 'slow', input: {} }] }])
  const { agent, books, clock } = testAgent({ models: [model], tools: [slow], agent: { turn_timeout_secs: 30 } })
  const turn = agent.run(request('a', { idempotency: { scope: 's', key: 'k' } }))
  const failed = expect(turn).rejects.toMatchObject({ code: 'upstream_timeout', status: 504 })
  await until(() => model.asked.length === 1)
  await clock.advance(29_000)
  expect(books.ends).toEqual([])
  await clock.advance(1000)
  await failed
  expect(books.ends).toMatchObject([{ status: 'failed', error: { code: 'upstream_timeout' }, messages: [], idempotency: { key: 'k' } }])
})

test('step_timeout_secs ends a turn whose tool makes no progress, and a turn of many steps goes on', async () => {
  let calls = 0
  const slow = testTool('slow', () => (++calls > 4 ? new Promise(() => undefined) : clock.sleep(20_000).then(() => 'done')))
  const model = scriptedModel([() => ({ calls: [{ name: 'slow', input: { key: `${calls}` } }] })])
  const { agent, clock, books } = testAgent({ models: [model], tools: [slow], agent: { step_timeout_secs: 30 } })
  const turn = agent.run(request('a', { idempotency: { scope: 's', key: 'k' } }))
  const failed = expect(turn).rejects.toMatchObject({ code: 'upstream_timeout', message: 'A step of the turn took longer than 30 s' })
  for (let second = 0; second < 82; second++) await clock.advance(1000)
  expect([calls, books.ends.length]).toEqual([5, 0])
  for (let second = 0; second < 30; second++) await clock.advance(1000)
  await failed
})

test('a turn whose time is nearly used up answers with its results so far, and the next turn continues', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const model = scriptedModel([{ calls: [{ name: 'look', input: {} }] }, { text: 'half' }, { text: 'whole' }])
  const { agent, clock } = testAgent({ models: [model], tools: [testTool('look', () => promise)], agent: { turn_timeout_secs: 100 } })
  const turn = agent.run(request('a', { session: 's' }))
  await until(() => model.asked.length === 1)
  await clock.advance(91_000)
  resolve('seen')
  expect(await turn).toMatchObject({ text: 'half' })
  expect(model.asked[1]).toMatchObject({ toolChoice: { type: 'none' } })
  expect(JSON.stringify(model.asked[1]?.prompt.at(-1))).toContain('the 100 s of this turn are used up')
  expect(await agent.run(request('continue', { session: 's' }))).toMatchObject({ text: 'whole' })
  expect(model.asked[2]).toMatchObject({ toolChoice: { type: 'auto' } })
})

test.each([
  ['operator', 100],
  ['stranger', 10],
] as const)('a turn of standing %s has %i steps', async (standing, steps) => {
  let asked = 0
  const model = scriptedModel([
    ({ toolChoice }) => (toolChoice?.type === 'none' ? { text: 'so far' } : { calls: [{ name: 'look', input: { key: `${asked++}` } }] }),
  ])
  const { agent } = testAgent({ models: [model], tools: [testTool('look', () => 'seen')] })
  expect(await agent.run(request('go', { limited: { client: 'owner', standing } }))).toMatchObject({ text: 'so far' })
  expect(asked).toBe(steps)
})

test('a finished turn leaves no timer behind', async () => {
  const { agent, clock } = testAgent({ models: [echo()] })
  for (let i = 0; i < 20; i++) await agent.run(request('a'))
  expect(clock.sleeping).toBe(1)
  await clock.advance(3_601_000)
  expect(clock.sleeping).toBe(0)
})

/** Lets time pass until the model was asked so often. */
async function untilAsked(count: number, { model, clock }: { model: ReturnType<typeof scriptedModel>; clock: TestClock }) {
  while (model.asked.length < count) await clock.advance(1000)
}

test.each([100, 1])('an empty reply after a tool call keeps the message and the result, with %i steps', async (max_iterations) => {
  const silent = [{ calls: [{ name: 'look', input: {} }] }, { text: '' }, { text: ' ' }]
  const model = scriptedModel([...silent, { text: 'whole' }])
  const { agent, clock } = testAgent({ models: [model], tools: [testTool('look', () => 'seen')], agent: { max_iterations } })
  const heard: TurnPart[] = []
  const turn = agent.run(request('look there', { session: 's', listen: (part) => heard.push(part) }))
  await untilAsked(3, { model, clock })
  const { text } = await turn
  expect(text).toMatch(/A message such as "continue" goes on from here\.$/)
  expect(heard.at(-1)).toMatchObject({ type: 'text', delta: expect.stringContaining('continue') })
  expect(await agent.run(request('continue', { session: 's' }))).toMatchObject({ text: 'whole' })
  expect(JSON.stringify(model.asked[3]?.prompt)).toMatch(/look there.*seen.*continue/)
})

test('an empty reply before any work fails the turn', async () => {
  const model = scriptedModel([{ text: '' }])
  const { agent, books, clock } = testAgent({ models: [model] })
  const failed = expect(agent.run(request('hello', { session: 's' }))).rejects.toMatchObject({ code: 'upstream' })
  await untilAsked(2, { model, clock })
  await failed
  expect(books.ends).toMatchObject([{ status: 'failed', messages: [] }])
})

test('a failed turn is recorded with reason and cost, and adds nothing to the session', async () => {
  const { agent, books, events } = testAgent({ models: [scriptedModel([httpError(400, 'too long')])] })
  await expect(agent.run(request('secret message', { session: 's' }))).rejects.toMatchObject({ code: 'upstream', status: 502 })
  const error = { code: 'upstream', message: 'scripted:scripted-1 answered HTTP 400: too long' }
  expect(books.ends).toMatchObject([{ status: 'failed', error, response: null, messages: [] }])
  expect(JSON.stringify(events)).not.toContain('secret message')
  expect(events.at(-1)).toMatchObject({ type: 'turn_failed', code: 'upstream' })
})

test('a failure that cannot be recorded is still reported, and the turn keeps its key', async () => {
  const { agent, books } = testAgent({ models: [scriptedModel([httpError(400)])] })
  books.fail('finish')
  await expect(agent.run(request('a', { idempotency: { scope: 's', key: 'k' } }))).rejects.toMatchObject({ code: 'upstream' })
  expect([...books.queued.keys()]).toEqual(['turn-1'])
  expect(books.released).toEqual([])
})

test('a turn whose end cannot be stored is unavailable and keeps its key', async () => {
  const { agent, books, events, observations } = testAgent({ models: [echo()] })
  books.fail('finish')
  const turn = agent.run(request('a', { session: 's', idempotency: { scope: 's', key: 'k' } }))
  await expect(turn).rejects.toMatchObject({ code: 'unavailable', status: 503 })
  expect(books.writes).toEqual(['enqueue turn-1', 'start turn-1', 'finish turn-1', 'addUsage turn-1'])
  expect(books.released).toEqual([])
  expect(events.map(({ type }) => type)).toEqual(['turn_started', 'turn_failed'])
  expect(observations.at(-1)).toMatchObject({ kind: 'turn', outcome: 'error' })
})

test('an internal error is logged with its cause and reported as a fixed text', async () => {
  const { agent, books, logs } = testAgent({ models: [echo()] })
  books.sessions.conversation = async () => {
    throw new TypeError('inner detail')
  }
  await expect(agent.run(request('a', { session: 's' }))).rejects.toMatchObject({
    code: 'internal',
    message: 'The turn failed because of an internal error',
  })
  expect(logs).toMatchObject([{ level: 'error', fields: { error: expect.objectContaining({ message: 'inner detail' }) } }])
})

test('events and observations have one trace: calls below the turn, the turn below the request', async () => {
  const look = testTool('look', () => 'seen')
  const { agent, events, observations } = testAgent({
    models: [scriptedModel([{ calls: [{ name: 'look', input: {} }] }, { text: 'done' }])],
    tools: [look],
  })
  const asked = request('a', { session: 's' })
  await agent.run(asked)
  expect(events.map(({ type }) => type)).toEqual(['turn_started', 'tool_started', 'tool_completed', 'turn_completed'])
  const spans = new Map(observations.map((seen) => [seen.kind, 'span' in seen ? seen.span.trace : undefined]))
  expect(observations.map(({ kind }) => kind)).toEqual(['model_call', 'tool_call', 'model_call', 'turn'])
  expect(spans.get('turn')).toMatchObject({ traceId: asked.trace.traceId, parentId: asked.trace.spanId })
  expect(spans.get('tool_call')).toMatchObject({ parentId: spans.get('turn')?.spanId })
  expect(spans.get('model_call')).toMatchObject({ parentId: spans.get('turn')?.spanId })
  expect(observations.at(-1)).toMatchObject({ provider: 'scripted', model: 'scripted-1', outcome: 'ok', iterations: 2 })
})

test('a listener that throws does not affect the turn', async () => {
  const { agent, logs } = testAgent({ models: [scriptedModel([{ text: 'fine' }])] })
  const listen = () => {
    throw new Error('gone')
  }
  await expect(agent.run(request('a', { listen }))).resolves.toMatchObject({ text: 'fine' })
  expect(logs).toMatchObject([{ level: 'error', message: 'turn listener failed' }])
})

test('a spent budget refuses before a model call', async () => {
  const model = echo()
  const { agent, books } = testAgent({
    models: [model],
    cost: { daily_limit_usd: 1, prices: { 'scripted-1': { input: 60_000, output: 0 } } },
  })
  books.spent = 0.5
  await agent.run(request('a'))
  const refused = agent.run(request('b'))
  await expect(refused).rejects.toMatchObject({ code: 'rate_limited', status: 429, message: expect.stringContaining('Daily budget') })
  expect(model.asked.length).toBe(1)
})

test('a drain refuses new and waiting turns and waits for running ones', async () => {
  const { model, order, answer } = gatedModel()
  const { agent } = testAgent({ models: [model] })
  const running = agent.run(request('a1', { session: 'a' }))
  const waiting = agent.run(request('a2', { session: 'a' }))
  const refused = expect(waiting).rejects.toMatchObject({ code: 'unavailable' })
  await turns()
  const drained = agent.drain(10_000)
  await refused
  await expect(agent.run(request('late'))).rejects.toMatchObject({ code: 'unavailable', message: 'The daemon is stopping' })
  await answer('a1')
  await drained
  await expect(running).resolves.toMatchObject({ text: 'to a1' })
  expect(order).toEqual(['a1'])
})

test('a drain aborts turns that outlast it', async () => {
  const { agent, clock, books } = testAgent({ models: [scriptedModel([hang])] })
  const stuck = expect(agent.run(request('a'))).rejects.toMatchObject({ code: 'unavailable' })
  await turns()
  const drained = agent.drain(10_000)
  await clock.advance(10_000)
  await drained
  await stuck
  expect(books.ends).toMatchObject([{ status: 'failed', error: { code: 'unavailable' } }])
  expect(agent.load()).toEqual({ running: 0, queued: 0, sessions: 0 })
})

test('an error the agent throws is always an AppError', async () => {
  const { agent } = testAgent({ models: [scriptedModel([new Error('boom')])] })
  await expect(agent.run(request('a'))).rejects.toBeInstanceOf(AppError)
})
