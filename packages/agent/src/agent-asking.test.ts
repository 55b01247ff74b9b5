import { AppError, Secret, type Tool } from '@sluice/sdk'
import { until } from '@sluice/testkit/until'
import { expect, test } from 'vitest'
import { memoryBooks } from './testing/memory-books.ts'
import { hang, scriptedModel } from './testing/scripted-model.ts'
import { request, type TestAgentOptions, testAgent, testTool } from './testing/test-agent.ts'
import type { ApprovedBy, ToolApprovalRequest } from './turn/turn.ts'

type Answer = ApprovedBy | false

/** An agent whose model calls the tool `reach` and answers with its result. The test decides when people answer. */
function asking(options: TestAgentOptions = {}) {
  const questions: (ToolApprovalRequest & { readonly answer: (answer: Answer) => void; readonly signal: AbortSignal })[] = []
  const ran: string[] = []
  const model = scriptedModel([
    ({ prompt }) => {
      const last = prompt.at(-1)
      if (last?.role === 'user' && !JSON.stringify(last).includes('reach')) return { text: 'done' }
      return last?.role === 'tool' ? { text: 'reached' } : { calls: [{ name: 'reach', input: {} }] }
    },
  ])
  const setup = testAgent({
    models: [model],
    tools: [testTool('reach', () => `ran ${ran.push('reach')}`, 'execute')],
    approve: (question, signal) => {
      const { promise, resolve } = Promise.withResolvers<Answer>()
      questions.push({ ...question, answer: resolve, signal })
      return promise
    },
    ...options,
    agent: { max_concurrent_turns: 1, turn_timeout_secs: 30, ...options.agent },
  })
  const asked = (count: number) => until(() => questions.length === count)
  return { ...setup, model, questions, ran, asked }
}

const yes = { by: 'roomchat:alice', standing: 'operator' } as const

test('a turn that waits for a person holds no permit, but blocks its session', async () => {
  const { agent, asked, questions, model } = asking()
  const waits: boolean[] = []
  const first = agent.run(request('reach', { session: 'a', onWait: (isWaiting) => waits.push(isWaiting) }))
  await asked(1)
  expect(waits).toEqual([true])
  expect(agent.load()).toEqual({ running: 0, queued: 0, sessions: 1 })
  const behind = agent.run(request('behind', { session: 'a' }))
  await expect(agent.run(request('other', { session: 'b' }))).resolves.toMatchObject({ text: 'done' })
  expect(model.asked.length).toBe(2)
  questions[0]?.answer(yes)
  await expect(first).resolves.toMatchObject({ text: 'reached' })
  await behind
  expect(waits).toEqual([true, false])
  expect(agent.load()).toEqual({ running: 0, queued: 0, sessions: 0 })
})

test('a store outage while a person is asked is not a refusal: the turn ends its attempt, and asks the same question again', async () => {
  const books = memoryBooks()
  const outage = new AppError('unavailable', 'The store cannot write now', { isPassing: true })
  const asked: string[] = []
  const { agent, ran, model } = asking({
    books,
    approve: async ({ callId }) => {
      asked.push(callId)
      if (asked.length === 1) throw outage
      return yes
    },
  })
  await agent.resume(books)
  await expect(agent.run(request('reach', { session: 'a', idempotency: { scope: 's', key: 'k' } }))).rejects.toBe(outage)
  expect([books.ends, ran, model.asked.length]).toEqual([[], [], 1])
  await agent.ensureResumed('turn-1')
  await until(() => books.ends.length === 1)
  expect(books.ends).toMatchObject([{ status: 'done', response: 'reached' }])
  expect(asked).toEqual([asked[0], asked[0]])
  expect(ran).toHaveLength(1)
})

test('a question that fails for another reason is a refusal, and the turn goes on', async () => {
  const { agent, ran } = asking({ approve: () => Promise.reject(new AppError('conflict', 'Another gate asks')) })
  await expect(agent.run(request('reach', { session: 'a' }))).resolves.toMatchObject({ text: 'reached' })
  expect(ran).toEqual([])
})

test('a turn continues with a permit before new turns start', async () => {
  const gate = Promise.withResolvers<void>()
  const slow = async () => {
    await gate.promise
    return 'waited'
  }
  const order: string[] = []
  const model = scriptedModel([
    ({ prompt }) => {
      const [asked] = (prompt[1]?.content ?? []) as { text: string }[]
      if (prompt.at(-1)?.role !== 'tool' && asked?.text !== 'new') return { calls: [{ name: asked?.text ?? '', input: {} }] }
      order.push(asked?.text ?? '')
      return { text: 'done' }
    },
  ])
  const tools = [testTool('reach', () => 'ran', 'execute'), testTool('slow', slow)]
  const { agent, questions, asked } = asking({ models: [model], tools })
  const first = agent.run(request('reach'))
  await asked(1)
  const turns = [first, agent.run(request('slow')), agent.run(request('new'))]
  await until(() => model.asked.length === 2)
  questions[0]?.answer(yes)
  await until(() => agent.load().queued === 2)
  expect(agent.load()).toMatchObject({ running: 1, queued: 2 })
  gate.resolve()
  await Promise.all(turns)
  expect(order).toEqual(['slow', 'reach', 'new'])
})

test('the time limit of a turn is paused while a person decides', async () => {
  const { agent, asked, questions, clock, model } = asking()
  const turn = agent.run(request('reach'))
  await clock.advance(20_000)
  await asked(1)
  await clock.advance(3_600_000)
  questions[0]?.answer(yes)
  await expect(turn).resolves.toMatchObject({ text: 'reached' })

  const late = asking({ models: [scriptedModel([{ calls: [{ name: 'reach', input: {} }] }, hang])] })
  const failed = expect(late.agent.run(request('reach'))).rejects.toMatchObject({ code: 'upstream_timeout' })
  await late.asked(1)
  await late.clock.advance(3_600_000)
  late.questions[0]?.answer(yes)
  await until(() => late.ran.length === 1)
  await late.clock.advance(29_000)
  expect(late.agent.load().running).toBe(1)
  await late.clock.advance(1000)
  await failed
  expect(model.asked.length).toBe(2)
})

test('an abort ends a turn that waits for a person and withdraws the question', async () => {
  const { agent, asked, questions, ran } = asking()
  const waits: boolean[] = []
  const ended = expect(agent.run(request('reach', { session: 's', onWait: (isWaiting) => waits.push(isWaiting) }))).rejects.toMatchObject({
    code: 'aborted',
  })
  await asked(1)
  expect(agent.abort('turn-1', 'owner')).toBe(true)
  await ended
  expect(waits).toEqual([true, false])
  expect(questions[0]?.signal.aborted).toBe(true)
  questions[0]?.answer(yes)
  await expect(agent.run(request('next', { session: 's' }))).resolves.toMatchObject({ text: 'done' })
  expect(ran).toEqual([])
  expect(agent.load()).toEqual({ running: 0, queued: 0, sessions: 0 })
})

test('a turn that is aborted while it reacquires its permit leaves the queue', async () => {
  const { agent, asked, questions, ran } = asking({
    tools: [testTool('reach', () => 'ran', 'execute'), testTool('slow', () => new Promise(() => undefined))],
    models: [scriptedModel([{ calls: [{ name: 'reach', input: {} }] }, { calls: [{ name: 'slow', input: {} }] }, { text: 'done' }])],
  })
  const first = expect(agent.run(request('reach'))).rejects.toMatchObject({ code: 'aborted' })
  await asked(1)
  const second = expect(agent.run(request('slow'))).rejects.toMatchObject({ code: 'aborted' })
  await until(() => agent.load().running === 1)
  questions[0]?.answer(yes)
  await until(() => agent.load().queued === 1)
  agent.abort('turn-1', 'owner')
  await first
  expect(agent.load()).toEqual({ running: 1, queued: 0, sessions: 0 })
  agent.abort('turn-2', 'owner')
  await second
  expect(ran).toEqual([])
  expect(agent.load()).toEqual({ running: 0, queued: 0, sessions: 0 })
})

test('a drain does not wait for people: a stored turn asks again with the same key', async () => {
  const before = asking()
  await before.agent.accept(request('reach', { session: 's', asksOwner: true }))
  await before.asked(1)
  await before.agent.drain(10_000)
  expect(before.clock.monotonicMs()).toBe(0)
  expect(before.books.ends).toEqual([])

  const after = asking({ books: before.books })
  await expect(after.resume()).resolves.toBe(1)
  await after.asked(1)
  const [first, again] = [before.questions[0], after.questions[0]]
  expect(again).toMatchObject({ callId: first?.callId, turn: first?.turn, summary: first?.summary, asksOwner: true })
  expect(after.model.asked).toEqual([])
  after.questions[0]?.answer(yes)
  await after.agent.ended('turn-1')
  expect(after.ran).toEqual(['reach'])
  expect(before.books.ends).toMatchObject([{ status: 'done', response: 'reached' }])
})

test('a turn that waits for a person survives any number of crashes', async () => {
  let life = asking()
  await life.agent.accept(request('reach', { session: 's' }))
  await life.asked(1)
  for (let crash = 0; crash < 12; crash++) {
    // The agent of a killed process never continues.
    life = asking({ books: life.books })
    await life.resume()
    await life.asked(1)
  }
  life.questions[0]?.answer(yes)
  await life.agent.ended('turn-1')
  expect(life.ran).toEqual(['reach'])
  expect(life.books.ends).toMatchObject([{ status: 'done', response: 'reached' }])
  expect(life.books.starts.get('turn-1')).toBe(1)
})

test('an attempt counts again after the decision, so that a crashing call ends', async () => {
  const crashing = { tools: [testTool('reach', () => new Promise<never>(() => undefined), 'execute')] }
  const { agent, asked, questions, books } = asking(crashing)
  await agent.accept(request('reach', { session: 's' }))
  await asked(1)
  expect(books.starts.get('turn-1')).toBe(0)
  questions[0]?.answer(yes)
  await until(() => books.starts.get('turn-1') === 1)
  expect(books.starts.get('turn-1')).toBe(1)
})

test('a listener of the waiting that throws does no harm', async () => {
  const { agent, asked, questions } = asking()
  const onWait = () => {
    throw new Error('gone')
  }
  const turn = agent.run(request('reach', { onWait }))
  await asked(1)
  questions[0]?.answer(yes)
  await expect(turn).resolves.toMatchObject({ text: 'reached' })
})

test('does not wait without a person to ask', async () => {
  const waits: boolean[] = []
  const model = scriptedModel([{ calls: [{ name: 'reach', input: {} }] }, { text: 'done' }])
  const { agent } = testAgent({ models: [model], tools: [testTool('reach', () => 'ran', 'execute')] })
  await agent.run(request('a', { onWait: (isWaiting) => waits.push(isWaiting) }))
  expect(waits).toEqual([])
})

test('a tool with effects asks a person while it runs; one that reads cannot', async () => {
  const heard: unknown[] = []
  const asker = (risk: 'read' | 'write'): Tool => ({
    ...testTool('reach', () => '', risk),
    run: async (_input, { ask }) => {
      heard.push(ask ? await ask({ question: 'Really?' }) : 'cannot ask')
      return 'asked'
    },
  })
  const writing = asking({ tools: [asker('write')] })
  const turn = writing.agent.run(request('reach', { session: 'a' }))
  await writing.asked(1)
  expect(writing.agent.load()).toMatchObject({ running: 0 })
  expect(writing.questions[0]?.summary).toContain('Really?')
  writing.questions[0]?.answer(yes)
  await expect(turn).resolves.toMatchObject({ text: 'reached' })
  await expect(asking({ tools: [asker('read')] }).agent.run(request('reach', { session: 'b' }))).resolves.toMatchObject({ text: 'reached' })
  expect(heard).toEqual([yes.by, 'cannot ask'])
})

test('the notice of a tool is shown below the call, visible and without secrets', async () => {
  const notices = ['It has changed:\n+ text: "a\u202eb key-of-the-test"', `long ${'x'.repeat(20_000)}`]
  const tool: Tool = { ...testTool('reach', () => 'ran', 'execute'), notice: () => notices.shift() }
  const { agent, asked, questions } = asking({ tools: [tool], secrets: () => [new Secret('key-of-the-test')] })
  const first = agent.run(request('reach'))
  await asked(1)
  expect(questions[0]?.summary).toBe('key: none\n\nIt has changed:\n+ text: "a\\u202eb [redacted]"')
  questions[0]?.answer(yes)
  await first
  const second = agent.run(request('reach again', { session: 'b' }))
  await asked(2)
  expect(questions[1]?.summary).toMatch(/^key: none\n\nlong x{3994}…$/)
  questions[1]?.answer(yes)
  await second
})
