import type { ModelCallOptions, ModelMessage } from '@sluice/sdk'
import { until } from '@sluice/testkit/until'
import { expect, test } from 'vitest'
import { messagesTokens } from '../history/tokens.ts'
import { type MemoryBooks, memoryBooks } from '../testing/memory-books.ts'
import { hang, httpError, type Reply, type ScriptedModel, type Step, scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent, testTool } from '../testing/test-agent.ts'

const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const said = (text: string): ModelMessage => ({ role: 'assistant', content: [{ type: 'text', text }] })
const textIn = ({ prompt }: ModelCallOptions): string => JSON.stringify(prompt)
const isSummary = ({ prompt }: ModelCallOptions): boolean => JSON.stringify(prompt[0]).includes('You write the memory of an assistant')
const summaries = ({ asked }: ScriptedModel) => asked.filter(isSummary)
const prompts = ({ asked }: ScriptedModel) => asked.filter((options) => !isSummary(options))

/** A model whose summaries are the facts, such as `fact-3`, of all that it is given. */
const extractor = (answer: Step = { text: 'Yes.' }, usage: Reply['usage'] = { input: 100, output: 10 }) =>
  scriptedModel([
    (options) => {
      if (isSummary(options)) return { text: [...new Set(textIn(options).match(/fact-\d+/g))].join(' '), usage }
      if (answer instanceof Error) throw answer
      return typeof answer === 'function' ? answer(options) : answer
    },
  ])

/** The usage that a provider without counts of tokens reports. */
const NOT_COUNTED = { input: 0, output: 0 }

/** Books with a session `room` of this many messages, each with a fact. */
function booksOf(count: number): MemoryBooks {
  const books = memoryBooks()
  const messages = Array.from({ length: count }, (_, at) => (at % 2 === 0 ? user(`fact-${at}`) : said(`fact-${at}`)))
  books.histories.set('room', messages)
  return books
}

const SMALL = { max_history_messages: 10 }
const inRoom = (text: string) => request(text, { session: 'room' })

test('a conversation within the window is not summarised', async () => {
  const model = extractor()
  const { agent, books } = testAgent({ models: [model], books: booksOf(10), agent: SMALL })
  await agent.run(inRoom('go on'))
  expect(summaries(model)).toEqual([])
  expect(books.summaries.size).toBe(0)
})

test('the oldest messages are summarised once, and later turns do not repeat it', async () => {
  const model = extractor()
  const { agent, books, events } = testAgent({ models: [model], books: booksOf(12), agent: SMALL })
  await agent.run(inRoom('one'))
  expect(books.writes).toEqual(['summarize room', 'finish turn-1'])
  expect(books.summaries.get('room')).toMatchObject({ text: 'fact-0 fact-1 fact-2 fact-3 fact-4 fact-5 fact-6 fact-7', upTo: 8 })
  expect(events).toContainEqual({
    type: 'session_summarized',
    turn_id: 'turn-1',
    session_id: 'room',
    messages: 8,
    model: 'scripted-1',
    input_tokens: 100,
    output_tokens: 10,
    cost_usd: 0,
  })
  await agent.run(inRoom('two'))
  expect(summaries(model)).toHaveLength(1)
  const [first, second] = prompts(model)
  expect(first && textIn(first)).toContain('fact-0 fact-1')
  // The prompt of the second turn continues the first, so that a provider can cache it.
  expect(second?.prompt.slice(0, first?.prompt.length)).toEqual(first?.prompt)
})

test('a fact of the third message survives five hundred messages', async () => {
  const model = extractor()
  const { agent, books } = testAgent({ models: [model], agent: SMALL })
  for (let turn = 0; turn < 250; turn++) await agent.run(inRoom(turn === 1 ? 'fact-7' : `question ${turn}`))
  expect(books.histories.get('room')).toHaveLength(500)
  expect(textIn(prompts(model).at(-1) ?? { prompt: [] })).toContain('fact-7')
  for (const { prompt } of prompts(model)) expect(prompt.length).toBeLessThanOrEqual(12)
  expect(summaries(model).length).toBeLessThan(120)
})

test('every summary gets the one before it, and no message twice', async () => {
  const model = extractor()
  const { agent } = testAgent({ models: [model], agent: SMALL })
  for (let turn = 0; turn < 30; turn++) await agent.run(inRoom(`mark-${turn}. fact-0`))
  const [, second, third] = summaries(model).map(textIn)
  expect(second).toContain('mark-4.')
  expect(second).not.toContain('mark-0.')
  expect(third).not.toContain('mark-4.')
})

test('messages that do not fit by their tokens are summarised too', async () => {
  const model = extractor()
  const books = memoryBooks()
  books.histories.set('room', [user(`fact-1 ${'x'.repeat(8000)}`), said('so'), user('fact-2'), said('yes')])
  const { agent } = testAgent({ models: [model], books, agent: { max_history_tokens: 2000 } })
  await agent.run(inRoom('go on'))
  expect(books.summaries.get('room')).toMatchObject({ upTo: 2, text: 'fact-1' })
  expect(textIn(prompts(model)[0] ?? { prompt: [] })).toContain('fact-2')
})

test('a session that is much larger than the window takes several calls, each stored', async () => {
  const model = extractor()
  const books = memoryBooks()
  books.histories.set(
    'room',
    Array.from({ length: 25 }, (_, at) => user(`fact-${at} ${'x'.repeat(1500)}`)),
  )
  const { agent, events } = testAgent({ models: [model], books, agent: { ...SMALL, max_history_tokens: 4000 } })
  await agent.run(inRoom('one'))
  const covered = events.flatMap((event) => (event.type === 'session_summarized' ? [event.messages] : []))
  expect(covered).toEqual([6, 12, 18, 20])
  expect(books.summaries.get('room')?.text).toContain('fact-19')
})

test('one turn makes at most four calls, and the next one goes on from there', async () => {
  const model = extractor()
  const books = memoryBooks()
  books.histories.set(
    'room',
    Array.from({ length: 100 }, (_, at) => user(`fact-${at} ${'x'.repeat(1500)}`)),
  )
  const { agent } = testAgent({ models: [model], books, agent: { ...SMALL, max_history_tokens: 4000 } })
  await agent.run(inRoom('one'))
  expect(summaries(model)).toHaveLength(4)
  expect(books.summaries.get('room')?.upTo).toBe(24)
  expect(textIn(prompts(model)[0] ?? { prompt: [] })).toContain('(Earlier messages were left out.)')
  await agent.run(inRoom('two'))
  expect(books.summaries.get('room')?.upTo).toBeGreaterThan(40)
})

test('tool calls are summarised with their results', async () => {
  const look: ModelMessage = {
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: '1', toolName: 'look', input: { at: 'fact-1' } }],
  }
  const result: ModelMessage = {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: '1', toolName: 'look', output: { type: 'text', value: 'fact-2' } }],
  }
  const books = memoryBooks()
  books.histories.set('room', [user('find it'), look, result, said('found'), user('and?'), said('no')])
  const model = extractor()
  const { agent } = testAgent({ models: [model], books, agent: { max_history_messages: 4 }, tools: [testTool('look', () => 'seen')] })
  await agent.run(inRoom('go on'))
  const [asked] = summaries(model)
  expect(asked).not.toHaveProperty('tools')
  expect(asked?.prompt.map(({ role }) => role)).toEqual(['system', 'user'])
  expect(books.summaries.get('room')).toMatchObject({ text: 'fact-1 fact-2', upTo: 4 })
})

test('the tokens and the cost of a summary count for its turn', async () => {
  const prices = { 'scripted-1': { input: 1, output: 2 } }
  const { agent } = testAgent({
    models: [extractor({ text: 'Yes.', usage: { input: 20, output: 5 } })],
    books: booksOf(12),
    agent: SMALL,
    cost: { prices },
  })
  const { usage } = await agent.run(inRoom('one'))
  expect(usage).toEqual({ inputTokens: 120, outputTokens: 15, costUsd: expect.closeTo(0.00015, 9) })
})

test('a summary that is too long is cut once', async () => {
  const model = scriptedModel([(options) => ({ text: isSummary(options) ? 'fact '.repeat(500) : 'Yes.' })])
  const { agent, books } = testAgent({ models: [model], books: booksOf(12), agent: { ...SMALL, max_history_tokens: 1000 } })
  await agent.run(inRoom('one'))
  const text = books.summaries.get('room')?.text ?? ''
  expect(text.length).toBeLessThanOrEqual(1000)
  expect(text.match(/characters left out/g)).toHaveLength(1)
  expect(textIn(prompts(model)[0] ?? { prompt: [] })).toContain(JSON.stringify(text).slice(1, -1))
})

test('the request and the reply of a summary fit into the window together', async () => {
  const books = memoryBooks()
  books.histories.set(
    'room',
    Array.from({ length: 80 }, (_, at) => user(`fact-${at} ${'x'.repeat(1500)}`)),
  )
  const model = extractor()
  const { agent } = testAgent({ models: [model], books, agent: { ...SMALL, max_history_tokens: 16_000 } })
  await agent.run(inRoom('one'))
  const [asked] = summaries(model)
  expect(asked?.maxOutputTokens).toBe(4000)
  expect(asked && textIn(asked).length / 4).toBeLessThan(12_000)
  expect(asked && textIn(asked).length / 4).toBeGreaterThan(10_000)
  const limited = extractor()
  const settings = [{ kind: 'scripted', max_output_tokens: 300 }] as const
  await testAgent({ models: [limited], settings, books: booksOf(12), agent: SMALL }).agent.run(inRoom('one'))
  expect(limited.asked.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([300, 300])
})

test('a summary leaves half of the tokens of a turn to its answer', async () => {
  const books = memoryBooks()
  books.histories.set(
    'room',
    Array.from({ length: 20 }, (_, at) => user(`fact-${at} ${'x'.repeat(1500)}`)),
  )
  const model = extractor()
  const { agent } = testAgent({ models: [model], books, agent: { ...SMALL, max_turn_tokens: 4000 } })
  await agent.run(inRoom('one'))
  for (const options of summaries(model)) expect(textIn(options).length / 4).toBeLessThan(2200)
})

test('a listener of the turn receives no part of a summary', async () => {
  const heard: string[] = []
  const { agent } = testAgent({ models: [extractor()], books: booksOf(12), agent: SMALL })
  await agent.run({ ...inRoom('one'), listen: (part) => void heard.push(part.type === 'text' ? part.delta : part.type) })
  expect(heard.join('')).toBe('Yes.')
})

test.each([
  ['an error', httpError(400)],
  ['an empty reply', { text: ' ' }],
  ['a refusal', { text: 'I cannot.', finish: 'content-filter', raw: 'refusal' }],
] as const)('after %s the conversation is cut, and the summary is tried again after a pause', async (_, failure) => {
  let isBroken = true
  const model = scriptedModel([
    (options) => {
      if (!isSummary(options)) return { text: 'Yes.' }
      if (!isBroken) return { text: 'all facts' }
      if (failure instanceof Error) throw failure
      return failure
    },
  ])
  const { agent, books, clock, logs } = testAgent({ models: [model], books: booksOf(12), agent: { ...SMALL, max_retries: 0 } })
  const warnings = () => logs.filter(({ message, level }) => level === 'warn' && message.startsWith('conversation not summarised'))
  const turn = async (text: string) => {
    const running = agent.run(inRoom(text))
    // An empty reply is repeated once, after a wait.
    for (let round = 0; round < 3; round++) await clock.advance(2000)
    expect((await running).text).toBe('Yes.')
  }
  await turn('one')
  const tries = summaries(model).length
  expect(prompts(model)[0]?.prompt).toHaveLength(12)
  await turn('two')
  expect(summaries(model)).toHaveLength(tries)
  await clock.advance(5 * 60_000)
  await turn('three')
  expect(summaries(model).length).toBeGreaterThan(tries)
  expect(warnings()).toHaveLength(1)
  isBroken = false
  await clock.advance(5 * 60_000)
  await turn('four')
  expect(books.summaries.size).toBe(0)
  await clock.advance(5 * 60_000)
  await turn('five')
  expect(books.summaries.get('room')?.text).toBe('all facts')
})

test('a summary that takes too long does not use up the time of the turn', async () => {
  const model = scriptedModel([(options) => (isSummary(options) ? hang() : { text: 'Yes.' })])
  const limits = { ...SMALL, turn_timeout_secs: 100, model_timeout_secs: 1000 }
  const { agent, clock } = testAgent({ models: [model], books: booksOf(12), agent: limits })
  const running = agent.run(inRoom('one'))
  await until(() => model.asked.length === 1)
  await clock.advance(50_000)
  expect((await running).text).toBe('Yes.')
})

test('aborting the turn ends its summary', async () => {
  const model = scriptedModel([hang])
  const { agent, books } = testAgent({ models: [model], books: booksOf(12), agent: SMALL })
  const running = agent.run(inRoom('one'))
  const failed = expect(running).rejects.toMatchObject({ code: 'aborted' })
  await until(() => model.asked.length === 1)
  agent.abort('turn-1')
  await failed
  expect(books.summaries.size).toBe(0)
})

test('the built-in model writes no summary, neither first nor as a fallback', async () => {
  const offline = scriptedModel([{ text: 'You said this.' }])
  const alone = testAgent({ models: [offline], labels: [{ provider: 'offline', model: 'offline' }], books: booksOf(12), agent: SMALL })
  await alone.agent.run(inRoom('one'))
  expect(alone.books.summaries.size).toBe(0)
  expect(alone.logs).toEqual([])
  const labels = [
    { provider: 'scripted', model: 'a' },
    { provider: 'offline', model: 'offline' },
  ]
  const both = testAgent({ models: [scriptedModel([httpError(400)]), offline], labels, books: booksOf(12), agent: SMALL })
  await both.agent.run(inRoom('one'))
  expect(both.books.summaries.size).toBe(0)
})

test('a fallback summarises when the first model fails, and the turn begins with the first model again', async () => {
  let isDown = true
  const first = scriptedModel([
    () => {
      if (isDown) throw httpError(400)
      return { text: 'first' }
    },
  ])
  const second = extractor()
  const { agent, books } = testAgent({ models: [first, second], books: booksOf(12), agent: SMALL })
  books.sessions.summarize = new Proxy(books.sessions.summarize, {
    apply(target, self, args) {
      isDown = false
      return Reflect.apply(target, self, args)
    },
  })
  expect((await agent.run(inRoom('one'))).text).toBe('first')
  expect(books.summaries.get('room')?.upTo).toBe(8)
})

test('without summarize_history the conversation is cut', async () => {
  const model = extractor()
  const { agent } = testAgent({ models: [model], books: booksOf(12), agent: { ...SMALL, summarize_history: false } })
  await agent.run(inRoom('one'))
  expect(summaries(model)).toEqual([])
  expect(model.asked[0]?.prompt).toHaveLength(12)
})

test('a summary that cannot be stored does not fail the turn', async () => {
  const books = booksOf(12)
  books.fail('summarize')
  const { agent } = testAgent({ models: [extractor()], books, agent: SMALL })
  expect((await agent.run(inRoom('one'))).text).toBe('Yes.')
})

test('a session that is erased meanwhile gets no summary, and the turn goes on without it', async () => {
  const books = booksOf(12)
  const model = scriptedModel([
    (options) => {
      if (isSummary(options)) books.histories.delete('room')
      return { text: 'Yes.' }
    },
  ])
  const { agent } = testAgent({ models: [model], books, agent: SMALL })
  await agent.run(inRoom('one'))
  expect(books.summaries.size).toBe(0)
  expect(textIn(prompts(model)[0] ?? { prompt: [] })).not.toContain('fact-')
})

test('a turn that a crash interrupts after its summary does not summarise again', async () => {
  const books = booksOf(12)
  const crashing = testAgent({ books, models: [extractor(hang)], agent: SMALL })
  await crashing.agent.accept(inRoom('one'))
  await until(() => books.writes.includes('summarize room'))
  const model = extractor()
  const restarted = testAgent({ books, models: [model], agent: SMALL })
  await restarted.resume()
  await until(() => books.ends.length === 1)
  expect(summaries(model)).toEqual([])
  expect(textIn(prompts(model)[0] ?? { prompt: [] })).toContain('fact-0 fact-1')
})

test('messages are not counted: a conversation of many short messages is not summarised', async () => {
  const model = extractor()
  const { agent, books } = testAgent({ models: [model], books: booksOf(400) })
  await agent.run(inRoom('go on'))
  expect(summaries(model)).toEqual([])
  expect(books.summaries.size).toBe(0)
  expect(model.asked[0]?.prompt).toHaveLength(402)
})

test('the built-in model gets the newest fifty messages', async () => {
  const offline = scriptedModel([{ text: 'You said this.' }])
  const { agent } = testAgent({ models: [offline], labels: [{ provider: 'offline', model: 'offline' }], books: booksOf(400) })
  await agent.run(inRoom('go on'))
  expect(offline.asked[0]?.prompt).toHaveLength(52)
})

test('a conversation is summarised once it fills four fifths of the window without the reply', async () => {
  const model = extractor({ text: 'Yes.' }, NOT_COUNTED)
  const settings = [{ kind: 'scripted', context_window: 10_000, max_output_tokens: 2000 }] as const
  const { agent, books } = testAgent({ models: [model], settings })
  const turns: number[] = []
  for (let turn = 0; turn < 12; turn++) {
    await agent.run(inRoom(`fact-${turn} ${'word '.repeat(800)}`))
    turns.push(books.summaries.get('room')?.upTo ?? 0)
  }
  // 6,400 tokens take six messages of a thousand.
  expect(turns.findIndex((upTo) => upTo > 0)).toBe(6)
  for (const { prompt } of prompts(model)) expect(JSON.stringify(prompt).length / 4).toBeLessThan(8000)
})

test('the count of the provider corrects the estimate', async () => {
  const counted = scriptedModel([
    (options) => ({ text: isSummary(options) ? 'all facts' : 'Yes.', usage: { input: textIn(options).length, output: 1 } }),
  ])
  const settings = [{ kind: 'scripted', context_window: 20_000 }] as const
  const { agent, books } = testAgent({ models: [counted], settings })
  for (let turn = 0; turn < 6; turn++) await agent.run(inRoom(`fact-${turn} ${'word '.repeat(800)}`))
  // By the estimate alone, twelve messages of a thousand tokens would fit.
  expect(books.summaries.get('room')?.upTo).toBeGreaterThan(0)
})

test('a provider that counts what is estimated changes nothing, although the system prompt is long', async () => {
  const settings = [{ kind: 'scripted', context_window: 20_000, max_output_tokens: 1000 }] as const
  const summarisedAt = async (usage?: (options: ModelCallOptions) => { input: number; output: number }) => {
    const model = scriptedModel([
      (options) => ({ text: isSummary(options) ? 'all facts' : 'Yes.', ...(usage && !isSummary(options) && { usage: usage(options) }) }),
    ])
    const { agent, books } = testAgent({ models: [model], settings, prompt: 'Be kind. '.repeat(2500) })
    for (let turn = 0; turn < 20; turn++) {
      await agent.run(inRoom(`fact-${turn} ${'word '.repeat(800)}`))
      if (books.summaries.get('room')) return turn
    }
    return undefined
  }
  const uncounted = await summarisedAt()
  expect(uncounted).toBeGreaterThan(2)
  expect(await summarisedAt(({ prompt }) => ({ input: messagesTokens(prompt), output: 1 }))).toBe(uncounted)
})

test('a Japanese conversation stays below its window', async () => {
  const model = extractor({ text: 'Yes.' }, NOT_COUNTED)
  const settings = [{ kind: 'scripted', context_window: 8000, max_output_tokens: 1000 }] as const
  const { agent } = testAgent({ models: [model], settings })
  for (let turn = 0; turn < 8; turn++) await agent.run(inRoom(`fact-${turn} ${'明日の会議は何時からですか。'.repeat(100)}`))
  expect(summaries(model).length).toBeGreaterThan(0)
  const characters = model.asked.map(({ prompt }) => JSON.stringify(prompt).replaceAll(/[ -~]/g, '').length)
  for (const count of characters) expect(count).toBeLessThan(7000)
})

/** Answers with calls that each find a fact of 4,000 characters, until this number of calls is made. */
const digger = (calls: number) => {
  let made = 0
  return extractor(() => (made++ < calls ? { calls: [{ name: 'dig', input: { key: `${made}` } }] } : { text: 'done' }), NOT_COUNTED)
}
const dig = testTool('dig', (key) => `fact-${key} ${'x'.repeat(4000)}`)

test('a long turn is summarised between its steps, and the messages stay stored', async () => {
  const model = digger(20)
  const settings = [{ kind: 'scripted', context_window: 10_000, max_output_tokens: 1000 }] as const
  const { agent, books } = testAgent({ models: [model], tools: [dig], settings })
  expect((await agent.run(inRoom('find all'))).text).toBe('done')
  expect(summaries(model).length).toBeGreaterThan(1)
  const asked = prompts(model)
  for (const options of asked) expect(textIn(options).length / 4).toBeLessThan(9000)
  expect(textIn(asked.at(-1) ?? { prompt: [] })).toMatch(/find all.*fact-1 fact-2/)
  expect(books.histories.get('room')).toHaveLength(42)
  // Between two summaries each request extends the one before it.
  const breaks = asked.filter(
    ({ prompt }, at) => at > 0 && JSON.stringify(prompt.slice(0, asked[at - 1]?.prompt.length)) !== JSON.stringify(asked[at - 1]?.prompt),
  )
  expect(breaks).toHaveLength(summaries(model).length)
  // The next turn reads the summary, too.
  await agent.run(inRoom('and now?'))
  expect(textIn(prompts(model).at(-1) ?? { prompt: [] })).toContain('fact-1 fact-2')
  expect(textIn(prompts(model).at(-1) ?? { prompt: [] }).length / 4).toBeLessThan(9000)
})

test('a crash after the summary of a long turn does not repeat it', async () => {
  const books = memoryBooks()
  const settings = [{ kind: 'scripted', context_window: 10_000, max_output_tokens: 1000 }] as const
  let made = 0
  const crashing = extractor(() => (made++ < 8 ? { calls: [{ name: 'dig', input: { key: `${made}` } }] } : hang()))
  const first = testAgent({ books, models: [crashing], tools: [dig], settings })
  await first.agent.accept(inRoom('find all'))
  await until(() => prompts(crashing).length === 9)
  const written = summaries(crashing).length
  expect(written).toBeGreaterThan(0)
  const model = extractor({ text: 'done' })
  const restarted = testAgent({ books, models: [model], tools: [dig], settings })
  await restarted.resume()
  await until(() => books.ends.length === 1)
  expect(summaries(model)).toEqual([])
  expect(textIn(model.asked[0] ?? { prompt: [] })).toContain('fact-1 fact-2')
})

test('/compact says that a limit in dollars is reached', async () => {
  const cost = { daily_limit_usd: 1, prices: { 'scripted-1': { input: 60_000, output: 0 } } }
  const model = scriptedModel([{ text: 'dear', usage: { input: 100, output: 0 } }])
  const { agent } = testAgent({ models: [model], books: booksOf(6), cost })
  await agent.run(inRoom('hello'))
  expect((await agent.run(inRoom('/compact'))).text).toBe(
    'The model wrote no summary. The conversation is as before. Daily budget of 1 USD is used up.',
  )
  expect(model.asked).toHaveLength(1)
})

test('/compact summarises the whole conversation, with what matters to its writer', async () => {
  const model = extractor()
  const { agent, books } = testAgent({ models: [model], books: booksOf(6) })
  const { text } = await agent.run(inRoom('/compact the prices'))
  expect(text).toBe('The first 6 messages of this conversation are now a summary, which the model reads in their place.')
  expect(textIn(model.asked[0] ?? { prompt: [] })).toContain('above all: the prices')
  expect(model.asked).toHaveLength(1)
  expect(books.summaries.get('room')).toMatchObject({ upTo: 6, text: 'fact-0 fact-1 fact-2 fact-3 fact-4 fact-5' })
  expect(books.histories.get('room')).toHaveLength(6)
  expect((await agent.run(inRoom('/compact'))).text).toBe('There is nothing to summarise yet.')
})
