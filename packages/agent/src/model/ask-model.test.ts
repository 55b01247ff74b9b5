import type { LanguageModel, ModelStreamPart } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { memoryBooks } from '../testing/memory-books.ts'
import { hang, httpError, networkError, type Reply, type Step, scriptedModel, streamingModel } from '../testing/scripted-model.ts'
import { request, type TestAgentOptions, testAgent, testTool } from '../testing/test-agent.ts'
import type { TurnPart } from '../turn/turn.ts'

/** Runs one turn to its end and advances the clock for its waits. */
async function runTurn(models: readonly LanguageModel[], options: TestAgentOptions & { listen?: (part: TurnPart) => void } = {}) {
  const { listen, ...rest } = options
  const setup = testAgent({ models, ...rest })
  let isOver = false
  const ended = setup.agent.run(request('a', listen && { listen })).then(
    (result) => ({ result, error: undefined }),
    (error) => ({ result: undefined, error }),
  )
  void ended.then(() => {
    isOver = true
  })
  for (let passedMs = 0; !isOver && passedMs < 400_000; passedMs += 500) await setup.clock.advance(500)
  return { ...setup, ...(await ended) }
}

// The first import takes real time, in which the test clock would run on.
await import('@valibot/to-json-schema')

const model = (...steps: Step[]) => scriptedModel(steps)
const fallback = () => scriptedModel([{ text: 'from the fallback' }], 'scripted-2')
const delta = (text: string): ModelStreamPart => ({ type: 'text-delta', id: 't', delta: text })

test('a temporary failure is retried max_retries times with growing delays', async () => {
  const flaky = model(httpError(503), networkError('ECONNRESET'), { text: 'at last' })
  const { result, clock } = await runTurn([flaky])
  expect(result).toMatchObject({ text: 'at last' })
  expect(clock.monotonicMs()).toBeLessThanOrEqual(2000)
  const down = model(httpError(503, 'busy'))
  const { error } = await runTurn([down], { agent: { max_retries: 3 } })
  expect(error).toMatchObject({ code: 'upstream', message: 'scripted:scripted-1 answered HTTP 503: busy' })
  expect(down.asked.length).toBe(4)
})

test('honours Retry-After up to a minute', async () => {
  const limited = model(httpError(429, 'slow down', { 'retry-after': '20' }), { text: 'thanks' })
  const { result, clock } = await runTurn([limited])
  expect(result).toMatchObject({ text: 'thanks' })
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(20_000)
  const closed = model(httpError(429, 'come back later', { 'retry-after': '3600' }))
  const { error } = await runTurn([closed])
  expect(error).toMatchObject({ code: 'upstream', retryAfterSecs: 3600 })
  expect(closed.asked.length).toBe(1)
})

test('a permanent failure falls back at once, and the turn stays with the fallback', async () => {
  const refusing = model(httpError(401, 'Incorrect API key provided: sk-1234567890abcdefghij'))
  const second = scriptedModel([{ calls: [{ name: 'look', input: {} }] }, { text: 'from the fallback' }], 'scripted-2')
  const { result, observations, logs } = await runTurn([refusing, second], { tools: [testTool('look', () => 'seen')] })
  expect(result).toMatchObject({ text: 'from the fallback', model: 'scripted-2' })
  expect(refusing.asked.length).toBe(1)
  expect(second.asked.length).toBe(2)
  expect(observations.flatMap((seen) => (seen.kind === 'model_call' ? `${seen.model} ${seen.outcome}` : []))).toEqual([
    'scripted-1 error',
    'scripted-2 ok',
    'scripted-2 ok',
  ])
  expect(logs).toMatchObject([{ level: 'error', fields: { reason: 'refused our credentials (HTTP 401)' } }])
  expect(JSON.stringify(logs)).not.toContain('sk-')
})

test('a hanging model times out and falls back; the turn ends as 504 without a fallback', async () => {
  const { result } = await runTurn([model(hang), fallback()], { agent: { model_timeout_secs: 5 } })
  expect(result).toMatchObject({ text: 'from the fallback' })
  const { error } = await runTurn([model(hang)], { agent: { model_timeout_secs: 5 } })
  expect(error).toMatchObject({ code: 'upstream_timeout', message: 'scripted:scripted-1 did not answer within 5 s' })
})

test('the error names the failure of every model', async () => {
  const { error } = await runTurn([model(httpError(400, 'unknown model')), model(networkError('ECONNREFUSED'))], {
    agent: { max_retries: 0 },
  })
  expect(error).toMatchObject({
    code: 'upstream',
    message: 'scripted:scripted-1 answered HTTP 400: unknown model; scripted:scripted-1 could not be reached (ECONNREFUSED)',
  })
})

test('an empty reply is retried once', async () => {
  const { result } = await runTurn([model({ text: '  ' }, { text: 'there' })])
  expect(result).toMatchObject({ text: 'there' })
  const silent = model({ text: '' })
  const { error } = await runTurn([silent], { agent: { max_retries: 5 } })
  expect(error).toMatchObject({ code: 'upstream', message: expect.stringContaining('empty reply') })
  expect(silent.asked.length).toBe(2)
})

test('blank text is left out of the history', async () => {
  const calling = model({ text: '\n\n', calls: [{ name: 'nowhere', input: {} }] }, { text: 'done' })
  await runTurn([calling])
  expect(calling.asked[1]?.prompt.at(-2)).toMatchObject({ role: 'assistant', content: [{ type: 'tool-call', toolName: 'nowhere' }] })
})

test('a withheld, exhausted or broken-off reply is a failure', async () => {
  const ends = async (reply: Reply) => (await runTurn([model(reply)])).error?.message
  expect(await ends({ finish: 'content-filter' })).toContain('withheld')
  expect(await ends({ finish: 'length', thinking: 'and so on' })).toContain('used up its output tokens')
  expect(await ends({ finish: 'error', text: 'half' })).toContain('reported an error')
  expect(await ends({ finish: 'interrupted', text: 'half' })).toContain('broke off')
})

test('a model that cannot be loaded is skipped', async () => {
  const labels = [
    { provider: 'openai', model: 'gone' },
    { provider: 'openai', model: 'here' },
  ]
  const { result, logs } = await runTurn([undefined as never, fallback()], { labels })
  expect(result).toMatchObject({ text: 'from the fallback' })
  expect(logs).toMatchObject([{ level: 'error', fields: { reason: 'failed unexpectedly' } }])
})

test('a listener receives text and thinking in order; other turns do not stream', async () => {
  const heard: TurnPart[] = []
  const speaking = model({ thinking: 'let me see', text: 'here you are' })
  const { result } = await runTurn([speaking], { listen: (part) => heard.push(part) })
  expect(result).toMatchObject({ text: 'here you are' })
  expect(heard.filter(({ type }) => type === 'thinking').map((part) => 'delta' in part && part.delta)).toEqual(['let ', 'me ', 'see'])
  expect(heard.filter(({ type }) => type === 'text').map((part) => 'delta' in part && part.delta)).toEqual(['here ', 'you ', 'are'])
  const whole = model({ text: 'whole' })
  await runTurn([{ ...whole, doStream: () => Promise.reject(new Error('streamed')) }])
  expect(whole.asked.length).toBe(1)
})

test('a stream is retried only before its first piece', async () => {
  const heard: string[] = []
  const listen = (part: TurnPart) => heard.push(part.type === 'text' ? part.delta : part.type)
  const cut = streamingModel([delta('Once upon'), networkError('ECONNRESET')])
  const early = await runTurn([streamingModel([networkError('ECONNRESET')]), fallback()], { listen })
  expect(early.result).toMatchObject({ text: 'from the fallback' })
  heard.length = 0
  const late = await runTurn([cut, fallback()], { listen })
  expect(late.error).toMatchObject({ code: 'upstream', message: expect.stringContaining('ECONNRESET') })
  expect(heard).toEqual(['Once upon'])
})

test('a stream is retried after its reasoning, which is not part of the answer', async () => {
  const thought: ModelStreamPart = { type: 'reasoning-delta', id: 'r', delta: 'hm' }
  const heard: string[] = []
  const { result } = await runTurn([streamingModel([thought, networkError('ECONNRESET')]), fallback()], {
    listen: (part) => heard.push(part.type),
  })
  expect(result).toMatchObject({ text: 'from the fallback' })
  expect(heard[0]).toBe('thinking')
})

test('a stream that breaks off or reports an error is a failure', async () => {
  const listen = () => undefined
  const broken = await runTurn([streamingModel([delta('half')])], { listen })
  expect(broken.error).toMatchObject({ code: 'upstream', message: expect.stringContaining('broke off') })
  const garbage = Object.assign(new Error('JSON parsing failed'), { name: 'AI_JSONParseError' })
  const failed = await runTurn([streamingModel([{ type: 'error', error: garbage }])], { listen })
  expect(failed.error).toMatchObject({ code: 'upstream', message: expect.stringContaining('cannot be read') })
})

test('the model timeout counts from piece to piece of a stream', async () => {
  const { readable: stream, writable } = new TransformStream<ModelStreamPart, ModelStreamPart>()
  const writer = writable.getWriter()
  const slow: LanguageModel = { ...scriptedModel([]), doStream: async () => ({ stream }) }
  const { agent, clock } = testAgent({ models: [slow], agent: { model_timeout_secs: 10 } })
  const ended = agent.run(request('a', { listen: () => undefined }))
  for (const word of ['one ', 'two ', 'three ']) {
    await clock.advance(8000)
    void writer.write(delta(word)).catch(() => undefined)
  }
  const stuck = expect(ended).rejects.toMatchObject({
    code: 'upstream_timeout',
    message: expect.stringContaining('did not answer within 10 s'),
  })
  await clock.advance(10_000)
  await stuck
})

test('tokens are estimated when the provider does not count them', async () => {
  const { result } = await runTurn([model({ text: 'x'.repeat(400) })])
  expect(result?.usage.outputTokens).toBe(104)
  expect(result?.usage.inputTokens).toBeGreaterThan(20)
})

test('replaces impossible counts of tokens by estimates', async () => {
  for (const wrong of [-5, 1e300, Number.NaN, Number.POSITIVE_INFINITY]) {
    const counted = model({ text: 'x'.repeat(400), usage: { input: wrong, output: wrong } })
    const { result } = await runTurn([counted], { cost: { prices: { 'scripted-1': { input: 1, output: 1 } } } })
    expect(result?.usage.outputTokens).toBe(104)
    expect(result?.usage.costUsd).toBeGreaterThan(0)
    expect(result?.usage.costUsd).toBeLessThan(0.01)
  }
})

test('settings of the operator reach the model', async () => {
  const asked = model({ text: 'a' })
  await runTurn([asked], { agent: { max_output_tokens: 77, temperature: 0.5, system_prompt: 'Be brief.' } })
  expect(asked.asked[0]).toMatchObject({ maxOutputTokens: 77, temperature: 0.5 })
  expect(asked.asked[0]?.prompt[0]).toMatchObject({ role: 'system', content: expect.stringMatching(/^Be brief\.\n/) })
  const plain = model({ text: 'a' })
  await runTurn([plain])
  expect(Object.keys(plain.asked[0] ?? {}).toSorted()).toEqual(['abortSignal', 'prompt'])
})

test('settings of an endpoint override the settings of the agent', async () => {
  const asked = model({ text: 'a' })
  const settings = [
    { kind: 'scripted', tools: false, reasoning_effort: 'low', max_output_tokens: 9, temperature: 0, max_history_tokens: 100 },
  ] as const
  const before = { role: 'user' as const, content: [{ type: 'text' as const, text: 'x'.repeat(1000) }] }
  const books = memoryBooks()
  books.histories.set('room', [before])
  const agent = { max_output_tokens: 77, summarize_history: false }
  const setup = testAgent({ models: [asked], settings, books, tools: [testTool('look', () => 'seen')], agent })
  await setup.agent.run(request('a', { session: 'room' }))
  expect(asked.asked[0]).toMatchObject({ maxOutputTokens: 9, temperature: 0, reasoning: 'low' })
  expect(asked.asked[0]).not.toHaveProperty('tools')
  expect(JSON.stringify(asked.asked[0]?.prompt)).not.toContain('xxx')
  const failing = model(httpError(503))
  const once = await runTurn([failing], { settings: [{ kind: 'scripted', max_retries: 0 }] })
  expect([once.error?.code, failing.asked.length]).toEqual(['upstream', 1])
})

test('a model without a price is not asked where a limit is set and [cost] unknown refuses it', async () => {
  const asked = model({ text: 'hello' })
  const cost = { daily_limit_usd: 1, unknown: 'refuse' as const }
  const { error } = await runTurn([asked], { cost })
  expect(error).toMatchObject({ refusedFor: 'request', message: expect.stringContaining('it has no price') })
  expect(asked.asked).toEqual([])
  const priced = { ...cost, prices: { 'scripted-1': { input: 1, output: 1 } } }
  expect((await runTurn([model({ text: 'hello' })], { cost: priced })).result).toMatchObject({ text: 'hello' })
  expect((await runTurn([model({ text: 'hello' })], { cost: { unknown: 'refuse' } })).result).toMatchObject({ text: 'hello' })
})
