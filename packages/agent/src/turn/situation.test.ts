import { expect, test } from 'vitest'
import { estimateTokens } from '../history/tokens.ts'
import { memoryBooks } from '../testing/memory-books.ts'
import { scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent } from '../testing/test-agent.ts'
import { situationNote } from './situation.ts'

const atMs = Date.UTC(2026, 10, 29, 17, 42, 31)
const place = 'roomchat, direct, from "alice", an operator; shows text and files'

test('tells weekday, date, minute and zone, and the place', () => {
  const { situation } = situationNote({ place, atMs, zone: 'Europe/Berlin', before: [] })
  expect(situation).toBe(`[Sunday 29 November 2026 18:42 Europe/Berlin; ${place}]`)
  expect(estimateTokens(situation)).toBeLessThan(120)
})

const textsOf = (prompt: readonly { content: unknown }[]) => JSON.stringify(prompt)

test('precedes each message, repeats a place only when it changes, and stays in later requests', async () => {
  let place = 'desk'
  const books = memoryBooks()
  const model = scriptedModel([{ text: 'hi' }])
  const { agent } = testAgent({ models: [model], books, placeOf: () => place, agent: { timezone: 'UTC' } })
  await agent.run(request('one', { session: 's' }))
  await agent.run(request('two', { session: 's' }))
  place = 'garden'
  await agent.run(request('three', { session: 's' }))
  const [first, second, third] = model.asked.map(({ prompt }) => prompt)
  expect(
    textsOf(third?.slice(1) ?? [])
      .match(/\[[A-Z][a-z]+day [^\]]*UTC[^\]]*\]\\n\w+/g)
      ?.map((note) => note.replace(/^.*UTC/, '')),
  ).toEqual(['; desk]\\none', ']\\ntwo', '; garden]\\nthree'])
  // Each request extends the one before it.
  expect(second?.slice(0, first?.length)).toEqual(first)
  expect(third?.slice(0, second?.length)).toEqual(second)
  // People read the text alone.
  expect(books.histories.get('s')?.[0]?.content).toEqual([{ type: 'text', text: 'one' }])
})

test('is the same after a crash', async () => {
  const books = memoryBooks()
  const hanging = scriptedModel([() => new Promise(() => undefined)])
  const { agent, clock } = testAgent({ models: [hanging], books, placeOf: () => 'desk', agent: { timezone: 'UTC' } })
  await agent.accept(request('one', { session: 's' }))
  await expect.poll(() => hanging.asked.length).toBe(1)
  await clock.advance(90_000)
  const model = scriptedModel([{ text: 'hi' }])
  const restarted = testAgent({ models: [model], books, clock, placeOf: () => 'desk', agent: { timezone: 'UTC' } })
  await restarted.resume()
  await expect.poll(() => model.asked.length).toBe(1)
  expect(model.asked[0]?.prompt).toEqual(hanging.asked[0]?.prompt)
})

test('the built-in model gets none', async () => {
  const model = scriptedModel([{ text: 'hi' }])
  const { agent } = testAgent({ models: [model], labels: [{ provider: 'offline', model: 'echo' }], placeOf: () => 'desk' })
  await agent.run(request('one'))
  expect(model.asked[0]?.prompt.at(-1)?.content).toEqual([{ type: 'text', text: 'one' }])
})

test('the system prompt has the identity files in the place of the identity line', async () => {
  const model = scriptedModel([{ text: 'hi' }])
  const { agent } = testAgent({ models: [model], identityOf: async (name) => `I am ${name}.` })
  await agent.run(request('one'))
  expect(model.asked[0]?.prompt[0]?.content).toMatch(/^I am main\.\n\n/)
})
