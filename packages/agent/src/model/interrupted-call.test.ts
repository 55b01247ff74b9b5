import { agentSection } from '@sluice/config'
import type { LanguageModel, ModelStreamPart, OwnedStore } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { testModel } from '../model-test/test-model.ts'
import { hang, httpError, networkError, scriptedModel, streamingModel } from '../testing/scripted-model.ts'
import { request, type TestAgentOptions, testAgent } from '../testing/test-agent.ts'
import { Admission } from '../turn/admission.ts'

// The first import takes real time, in which the test clock would run on.
await import('@valibot/to-json-schema')

const PROMPT = 'a long question '.repeat(100)
const cost = { prices: { 'scripted-1': { input: 1, output: 10 } } }
const delta = (text: string): ModelStreamPart => ({ type: 'text-delta', id: 't', delta: text })

/** A model whose stream stays open after these parts. */
function openStream(parts: readonly ModelStreamPart[]): LanguageModel {
  const stream = () =>
    new ReadableStream<ModelStreamPart>({
      start(controller) {
        for (const part of parts) controller.enqueue(part)
      },
    })
  return { ...scriptedModel([]), doStream: async () => ({ stream: stream() }) }
}

/** Runs a turn with a listener until its model call waits, and stops it there. */
async function stopped(model: LanguageModel, { isStreamed = true, ...options }: TestAgentOptions & { isStreamed?: boolean } = {}) {
  const setup = testAgent({ models: [model], cost, ...options })
  const stop = new AbortController()
  const ended = setup.agent.run(request(PROMPT, { signal: stop.signal, ...(isStreamed && { listen: () => undefined }) }))
  const error = ended.catch((reason: unknown) => reason)
  await setup.clock.advance(1000)
  stop.abort()
  expect(await error).toMatchObject({ code: 'aborted' })
  return setup
}

test('a call that is stopped within its answer counts its prompt and what has arrived', async () => {
  const input = 'x'.repeat(400)
  const parts: ModelStreamPart[] = [delta('y'.repeat(400)), { type: 'tool-input-start', id: 'c', toolName: 'look' }]
  const { books, observations } = await stopped(openStream([...parts, { type: 'tool-input-delta', id: 'c', delta: input }]))
  const [end] = books.ends
  expect(end).toMatchObject({ status: 'aborted', model: 'scripted-1', outputTokens: 204 })
  expect(end?.inputTokens).toBeGreaterThan(400)
  expect(end?.costUsd).toBeCloseTo(((end?.inputTokens ?? 0) + 2040) / 1_000_000, 12)
  const { inputTokens, outputTokens, costUsd } = end ?? {}
  expect(end?.steps).toMatchObject([{ kind: 'model', outcome: 'aborted', inputTokens, outputTokens, costUsd }])
  expect(observations).toContainEqual(
    expect.objectContaining({ kind: 'model_call', outcome: 'aborted', inputTokens, outputTokens, costUsd }),
  )
})

test('a call that is stopped before the first piece of its answer counts its prompt', async () => {
  const streamed = await stopped(openStream([]))
  expect(streamed.books.ends).toMatchObject([{ outputTokens: 0, inputTokens: expect.toSatisfy((tokens) => tokens > 400) }])
  const whole = await stopped(scriptedModel([hang]), { isStreamed: false })
  expect(whole.books.ends[0]?.inputTokens).toBe(streamed.books.ends[0]?.inputTokens)
})

test('a stopped call counts for the budget of the day and for the limits of its client', async () => {
  const spent: number[] = []
  const store = {
    take: async () => undefined,
    overspent: async () => undefined,
    spend: async (_: readonly string[], usd: number) => void spent.push(usd),
  }
  const limits = [{ key: 'owner', turnsPerHour: 0, turnsInFlight: 0, usdPerDay: 1 }]
  const deps = { store, limitsOf: () => limits, clock: testAgent().clock, events: { emit: () => undefined } }
  const admission = new Admission(deps as unknown as ConstructorParameters<typeof Admission>[0])
  const { agent, books } = await stopped(openStream([]), { admission, cost: { ...cost, daily_limit_usd: 0.000_1 } })
  expect(spent).toEqual([books.ends[0]?.costUsd])
  await expect(agent.run(request('b'))).rejects.toMatchObject({ code: 'rate_limited' })
})

test('records the usage of a stopped answer before its worker ends the message', async () => {
  const setup = testAgent({ models: [openStream([delta('x'.repeat(400))])], cost })
  const stop = new AbortController()
  const owned = { ...setup.books, lease: undefined } as unknown as OwnedStore
  const delivery = { owned, turnId: 't7', inbox: 7, attempts: 1, receivedAtMs: 0, checkpoint: [], reply: () => [] }
  const ended = setup.agent.run(request(PROMPT, { signal: stop.signal, listen: () => undefined, delivery }))
  const stopped = expect(ended).rejects.toMatchObject({ code: 'aborted' })
  await setup.clock.advance(1000)
  stop.abort()
  await stopped
  expect(setup.books.ends).toEqual([])
  expect(setup.books.used).toMatchObject([{ id: 't7', model: 'scripted-1', outputTokens: 104 }])
  expect(setup.books.used[0]?.inputTokens).toBeGreaterThan(400)
})

test('a call that times out counts, also where a fallback answers', async () => {
  const second = scriptedModel([{ text: 'there', usage: { input: 10, output: 1 } }], 'scripted-2')
  const { agent, clock } = testAgent({ models: [scriptedModel([hang]), second], agent: { model_timeout_secs: 5 } })
  const ended = agent.run(request(PROMPT))
  await clock.advance(5000)
  const { usage, model } = await ended
  expect(model).toBe('scripted-2')
  expect(usage.inputTokens).toBeGreaterThan(410)
  expect(usage.outputTokens).toBe(1)
})

test('a stream that fails within its answer counts; a refused call and a failed connection count nothing', async () => {
  const endOf = async (model: LanguageModel) => {
    const { agent, books } = testAgent({ models: [model], agent: { max_retries: 0 } })
    await expect(agent.run(request(PROMPT, { listen: () => undefined }))).rejects.toMatchObject({ code: 'upstream' })
    return books.ends[0]
  }
  const broken = await endOf(streamingModel([delta('x'.repeat(400)), networkError('ECONNRESET')]))
  expect(broken).toMatchObject({ outputTokens: 104, inputTokens: expect.toSatisfy((tokens) => tokens > 400) })
  const nothing = { inputTokens: 0, outputTokens: 0, costUsd: 0, model: null }
  expect(await endOf(scriptedModel([networkError('ECONNREFUSED')]))).toMatchObject(nothing)
  expect(await endOf(scriptedModel([httpError(401)]))).toMatchObject(nothing)
  expect(await endOf(streamingModel([networkError('ECONNRESET')]))).toMatchObject(nothing)
})

test('a turn that is stopped while its model is loaded counts nothing', async () => {
  const loading = new Promise<never>(() => undefined)
  const { books } = await stopped(loading as unknown as LanguageModel)
  expect(books.ends).toMatchObject([{ inputTokens: 0, outputTokens: 0, model: null }])
})

test('a request of a model test that times out counts', async () => {
  const { clock } = testAgent()
  const usages: number[] = []
  const ended = testModel({
    load: async () => scriptedModel([hang]),
    settings: { kind: 'scripted', model_timeout_secs: 5 },
    agent: v.parse(agentSection.schema, {}),
    prices: {},
    tests: ['text'],
    clock,
    scrub: (text) => text,
    signal: new AbortController().signal,
    onResult: ({ usage }) => void usages.push(usage.inputTokens),
  })
  await clock.advance(5000)
  await ended
  expect(usages).toEqual([expect.toSatisfy((tokens) => tokens > 0)])
})

test('a model test that is aborted records what its requests cost', async () => {
  const { agent, books, clock } = testAgent({ models: [scriptedModel([hang])], cost })
  const stop = new AbortController()
  const ended = agent.testModel({
    settings: { kind: 'scripted', model: 'scripted-1' },
    tests: ['text'],
    signal: stop.signal,
    onResult: () => undefined,
  })
  const error = ended.catch((reason: unknown) => reason)
  await clock.advance(1000)
  stop.abort()
  expect(await error).toMatchObject({ code: 'aborted' })
  expect(books.ends).toMatchObject([{ source: 'models', inputTokens: expect.toSatisfy((tokens) => tokens > 0) }])
})
