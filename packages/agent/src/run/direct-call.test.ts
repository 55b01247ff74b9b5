import { AppError, MAIN_AGENT } from '@sluice/sdk'
import { until } from '@sluice/testkit/until'
import { describe, expect, test } from 'vitest'
import { memoryBooks } from '../testing/memory-books.ts'
import { request, type TestAgentOptions, testAgent, testTool } from '../testing/test-agent.ts'
import { DIRECT_CALL, directCallText, readDirectAnswer, readDirectCall } from './direct-call.ts'

const call = (tool: string, key = 'k') => request(directCallText({ tool, input: { key } }), { source: DIRECT_CALL, tools: [tool] })

async function arrange(options: TestAgentOptions = {}) {
  const ran: string[] = []
  const act = (key: string) => `did ${ran.push(key) && key}`
  const tools = [testTool('look', (key) => `saw ${key}`), testTool('change', act, 'write'), ...(options.tools ?? [])]
  const made = testAgent({ policy: { level: 'full' }, ...options, tools })
  const make = async (tool: string, key?: string) => {
    const id = await made.agent.accept(call(tool, key))
    await made.agent.ended(id)
    return id
  }
  const answers = () => made.books.ends.map(({ response, status }) => (response === null ? status : readDirectAnswer(response)))
  return { ...made, make, ran, answers }
}

const INTERRUPTED = { outcome: 'interrupted', output: expect.stringContaining('may or may not have taken effect') }

describe('a direct call', () => {
  test('runs one tool without a model and records its result as a turn', async () => {
    const { make, answers, books, observations } = await arrange()
    await make('look', 'the sky')
    await make('change', 'a tyre')
    expect(answers()).toEqual([
      { outcome: 'ok', output: 'saw the sky' },
      { outcome: 'ok', output: 'did a tyre' },
    ])
    expect(readDirectCall(books.ends[0]?.input ?? '')).toEqual({ tool: 'look', input: { key: 'the sky' } })
    expect(books.ends[0]).toMatchObject({ agent: MAIN_AGENT, model: null, costUsd: 0, messages: [] })
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'turn', source: 'call', model: '', iterations: 0 }))
  })

  test('writes ahead only what has effects', async () => {
    const { make, books } = await arrange()
    await make('look')
    expect(books.writes.filter((line) => line.startsWith('checkpoint'))).toEqual([])
    await make('change')
    expect(books.writes.filter((line) => line.startsWith('checkpoint'))).toHaveLength(1)
  })

  test('obeys the policy, asks a person, and has an error result when refused', async () => {
    const asked: string[] = []
    const approve: TestAgentOptions['approve'] = async ({ summary }) => {
      asked.push(summary)
      return summary.includes('no') ? false : { by: 'cli:me', standing: 'operator' as const }
    }
    const { make, answers, ran } = await arrange({
      policy: { level: 'supervised' },
      approve,
      tools: [testTool('reach', (key) => key, 'execute')],
    })
    await make('reach', 'yes')
    await make('reach', 'no')
    expect(asked).toEqual(['key: yes', 'key: no'])
    expect(answers()).toMatchObject([{ outcome: 'ok', output: 'yes' }, { outcome: 'error' }])
    expect(ran).toEqual([])
  })

  test('of an unknown tool or with a wrong input is an error result', async () => {
    const { make, agent, answers } = await arrange()
    await make('lok')
    await agent.ended(await agent.accept(request('{"tool":"look","input":{"key":7}}', { source: DIRECT_CALL })))
    expect(answers()).toMatchObject([
      { outcome: 'error', output: expect.stringContaining('There is no tool "lok"') },
      { outcome: 'error', output: expect.stringContaining('key') },
    ])
  })

  test('that a crash interrupted is not repeated', async () => {
    const books = memoryBooks()
    const hung = Promise.withResolvers<string>()
    const first = await arrange({ books, tools: [testTool('hang', () => hung.promise, 'write')] })
    const id = await first.agent.accept(call('hang'))
    await until(() => books.checkpoints.has(id))
    const second = await arrange({ books, tools: [testTool('hang', () => expect.unreachable('the call was repeated'), 'write')] })
    await second.agent.resume(books)
    await second.agent.ended(id)
    expect(second.answers()).toEqual([INTERRUPTED])
  })

  test('that a crash interrupted before it began is made after the start', async () => {
    const books = memoryBooks()
    const { trace } = request('')
    books.queued.set('t', {
      id: 't',
      agent: MAIN_AGENT,
      sessionId: null,
      source: DIRECT_CALL,
      input: call('change').text,
      context: { trace },
      createdAtMs: 0,
    })
    const { agent, ran, answers } = await arrange({ books })
    await agent.resume(books)
    await agent.ended('t')
    expect([ran, answers()]).toEqual([['k'], [{ outcome: 'ok', output: 'did k' }]])
  })

  test('that is aborted after it has begun may have taken effect; before, it is aborted', async () => {
    const hung = () => new Promise<string>(() => {})
    const { agent, books, answers } = await arrange({ tools: [testTool('hang', hung, 'write'), testTool('wait', hung)] })
    const begun = await agent.accept(call('hang'))
    await until(() => books.checkpoints.has(begun))
    const reading = await agent.accept(call('wait'))
    await until(() => agent.load().running === 2)
    expect([agent.abort(begun), agent.abort(reading)]).toEqual([true, true])
    await Promise.all([agent.ended(begun), agent.ended(reading)])
    expect(answers()).toEqual(expect.arrayContaining([INTERRUPTED, 'aborted']))
  })

  test('that a stop interrupts is not recorded, so that the next start says so', async () => {
    const books = memoryBooks()
    const { agent, clock } = await arrange({ books, tools: [testTool('hang', () => new Promise(() => {}), 'write')] })
    const id = await agent.accept(call('hang'))
    await until(() => books.checkpoints.has(id))
    const drained = agent.drain(1000)
    await clock.advance(1000)
    await drained
    expect(books.ends).toEqual([])
    const next = await arrange({ books, tools: [testTool('hang', () => expect.unreachable('the call was repeated'), 'write')] })
    await next.agent.resume(books)
    await next.agent.ended(id)
    expect(next.answers()).toEqual([INTERRUPTED])
  })

  test('passes on the data of a tool and the source of its output', async () => {
    const tool = { ...testTool('far', () => 'x'), untrusted: true, run: async () => Promise.reject(new AppError('upstream', 'it said no')) }
    const { make, answers } = await arrange({ tools: [tool] })
    await make('far')
    expect(answers()).toEqual([{ outcome: 'error', output: 'it said no', untrusted: 'far' }])
  })
})
