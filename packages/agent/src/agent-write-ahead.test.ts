import type { ModelMessage } from '@sluice/sdk'
import { effort } from '@sluice/testkit/random'
import { until } from '@sluice/testkit/until'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryBooks } from './testing/memory-books.ts'
import { type Reply, scriptedModel } from './testing/scripted-model.ts'
import { request, resultsIn, testAgent, testTool } from './testing/test-agent.ts'

type Call = NonNullable<Reply['calls']>[number]

/** The durable steps in order: stored checkpoints and effects of tools. */
type Happened =
  | { readonly kind: 'kept'; readonly checkpoint: ModelMessage[] }
  | { readonly kind: 'ran'; readonly key: string }
  | { readonly kind: 'asked'; readonly key: string; readonly callId: string }

interface State {
  readonly checkpoint: ModelMessage[] | undefined
  readonly ran: readonly string[]
  readonly asked: readonly { readonly key: string; readonly callId: string }[]
}

const FRESH: State = { checkpoint: undefined, ran: [], asked: [] }
const RUNS = effort(200)

/** Runs a turn with these replies from the state that a kill left. */
async function play(replies: readonly Call[][], { checkpoint }: State) {
  const happened: Happened[] = []
  const acts = (key: string) => `did ${happened.push({ kind: 'ran', key }) && key}`
  const tools = [testTool('look', (key) => `saw ${key}`), testTool('change', acts, 'write'), testTool('reach', acts, 'execute')]
  // The model repeats a lost reply unchanged.
  const model = scriptedModel([
    ({ prompt }) => {
      const calls = replies[prompt.filter(({ role }) => role === 'assistant').length]
      return calls ? { calls } : { text: 'done' }
    },
  ])
  const books = memoryBooks()
  const { checkpoint: keep } = books.turns
  books.turns.checkpoint = async (id, messages) => {
    happened.push({ kind: 'kept', checkpoint: structuredClone([...messages]) })
    await keep(id, messages)
  }
  const context = { trace: request('').trace }
  books.queued.set('t', { id: 't', agent: 'main', sessionId: 's', source: 'test', input: 'go', context, createdAtMs: 0 })
  if (checkpoint) books.checkpoints.set('t', checkpoint)
  const { agent } = testAgent({
    books,
    tools,
    models: [model],
    approve: async ({ callId, summary }) => {
      happened.push({ kind: 'asked', key: summary.replace('key: ', ''), callId })
      return { by: 'cli:me', standing: 'operator' as const }
    },
  })
  await agent.resume(books)
  await agent.ended('t')
  return { happened, model, end: books.ends[0] }
}

/** Returns the state after a kill behind the first `count` steps. */
function killed(before: State, happened: readonly Happened[], count: number): State {
  const survived = happened.slice(0, count)
  return {
    checkpoint: survived.findLast((thing) => thing.kind === 'kept')?.checkpoint ?? before.checkpoint,
    ran: [...before.ran, ...survived.flatMap((thing) => (thing.kind === 'ran' ? thing.key : []))],
    asked: [...before.asked, ...survived.flatMap((thing) => (thing.kind === 'asked' ? thing : []))],
  }
}

/** Returns the result of each call over the whole turn, in order. */
const answersOf = (messages: readonly ModelMessage[] = []): string[] => messages.flatMap((message) => resultsIn([message]))

const countIn = (list: readonly string[], wanted: string): number => list.filter((item) => item === wanted).length

/** Kills the turn at these steps, one after another, and then lets it end. */
async function holds(replies: readonly Call[][], cuts: readonly number[]): Promise<void> {
  const whole = await play(replies, FRESH)
  const expected = answersOf(whole.end?.messages)
  let state = FRESH
  for (const cut of cuts) {
    const { happened } = await play(replies, state)
    state = killed(state, happened, cut % (happened.length + 1))
  }
  const last = await play(replies, state)
  const { ran, asked } = killed(state, last.happened, Number.POSITIVE_INFINITY)

  expect(last.end).toMatchObject({ status: 'done', response: 'done' })
  const kept = (state.checkpoint ?? []).filter(({ role }) => role === 'assistant').length
  expect(last.model.asked.length, 'a reply that is kept is not asked for again').toBe(replies.length + 1 - kept)
  const answers = answersOf(last.end?.messages)
  expect(answers.length).toBe(expected.length)
  const lost = expected.filter((answer, index) => {
    if (answers[index] === answer) return false
    expect(answers[index]).toContain('may or may not have taken effect')
    return true
  })
  for (const key of new Set(whole.happened.flatMap((thing) => (thing.kind === 'ran' ? thing.key : [])))) {
    const once = countIn(expected, `did ${key}`)
    expect(countIn(ran, key), `${key} has its effect no oftener than without a kill`).toBeLessThanOrEqual(once)
    expect(countIn(ran, key) + countIn(lost, `did ${key}`), `${key} ran, or the model knows it may not have`).toBeGreaterThanOrEqual(once)
  }
  expect(ran.filter((key) => !expected.includes(`did ${key}`))).toEqual([])
  for (const { key, callId } of asked) {
    expect(new Set(asked.filter((other) => other.key === key).map((other) => other.callId))).toEqual(new Set([callId]))
  }
}

const MIXED: Call[][] = [
  [
    { name: 'look', input: { key: 'a' } },
    { name: 'reach', input: { key: 'b' } },
    { name: 'change', input: '{"key":' },
    { name: 'change', input: { key: 'c' } },
    { name: 'change', input: { key: 'd' } },
    { name: 'change', input: { key: 'd' } },
    { name: 'change', input: { key: 'd' } },
    { name: 'missing', input: {} },
    { name: 'reach', input: { key: 'e' } },
  ],
  [{ name: 'look', input: { key: 'f' } }],
  [
    { name: 'change', input: { key: 'g' } },
    { name: 'change', input: { key: 'd' } },
    { name: 'reach', input: { key: 'h' } },
  ],
]

test('a turn killed at any step resumes without repeating effects or losing calls', async () => {
  const { happened } = await play(MIXED, FRESH)
  expect(happened.length).toBeGreaterThan(20)
  for (let cut = 0; cut <= happened.length; cut++) await holds(MIXED, [cut])
})

test('a turn killed repeatedly has every effect at most once', async () => {
  const call = fc.record({
    name: fc.constantFrom('look', 'change', 'reach', 'missing'),
    kind: fc.constantFrom('good', 'good', 'good', 'bad'),
  })
  const replies = fc.array(fc.array(call, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(replies, fc.array(fc.nat(40), { minLength: 1, maxLength: 4 }), async (given, cuts) => {
      const made = given.map((calls, reply) =>
        calls.map(({ name, kind }, index) => ({ name, input: kind === 'bad' ? '[' : { key: `${reply}.${index}` } })),
      )
      await holds(made, cuts)
    }),
    { numRuns: RUNS },
  )
})

test('a call is stored as interrupted before it runs and with its result after', async () => {
  const { happened } = await play([[{ name: 'change', input: { key: 'a' } }]], FRESH)
  expect(happened.map(({ kind }) => kind)).toEqual(['kept', 'ran', 'kept'])
  const kept = happened.flatMap((thing) => (thing.kind === 'kept' ? [answersOf(thing.checkpoint)] : []))
  expect(kept).toEqual([[expect.stringContaining('may or may not')], ['did a']])
})

test('a reply is stored before a person is asked, and the call before it runs', async () => {
  const { happened } = await play([[{ name: 'reach', input: { key: 'a' } }]], FRESH)
  expect(happened.map(({ kind }) => kind)).toEqual(['kept', 'asked', 'kept', 'ran', 'kept'])
})

test('a round that only reads is stored once, at its end', async () => {
  const look = { name: 'look', input: { key: 'a' } }
  const { happened } = await play([[look, { name: 'missing', input: {} }], [look]], FRESH)
  expect(happened.map(({ kind }) => kind)).toEqual(['kept', 'kept'])
})

test('a call that cannot be written ahead does not run', async () => {
  const ran: string[] = []
  const change = testTool('change', (key) => `${ran.push(key)}`, 'write')
  const { agent, books } = testAgent({ tools: [change], models: [scriptedModel([{ calls: [{ name: 'change', input: {} }] }])] })
  books.fail('checkpoint')
  await agent.accept(request('go'))
  await until(() => books.ends.length === 1)
  expect(ran).toEqual([])
  expect(books.ends).toMatchObject([{ status: 'failed', error: { code: 'unavailable' } }])
})

test('questions have distinct keys, also when a model repeats ids', async () => {
  const call = (key: string) => [{ id: 'same', name: 'reach', input: { key } }]
  const { happened } = await play([call('a'), call('b'), call('a')], FRESH)
  const ids = happened.flatMap((thing) => (thing.kind === 'asked' ? thing.callId : []))
  expect(new Set(ids).size).toBe(3)
})
