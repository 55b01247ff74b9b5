/** A turn that may be silent ends with `silent`, which sends nothing; the answer of any other turn is text. */
import { expect, test } from 'vitest'
import { scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent } from '../testing/test-agent.ts'
import { queuedTurn } from '../turn/queued-turn.ts'
import { parseTurnContext } from '../turn/turn-context.ts'

test.each([
  ['(silent)', true, 'silent', ''],
  [' (Silent)\n', true, 'silent', ''],
  ['I say (silent).', true, 'stop', 'I say (silent).'],
  ['(silent)', false, 'stop', '(silent)'],
] as const)('the answer %j of a turn that may be silent (%s) ends with %s', async (text, maySilent, finishReason, said) => {
  const model = scriptedModel([{ text }])
  const { agent, events } = testAgent({ models: [model], placeOf: () => 'x, in "room"' })
  const result = await agent.run(request('hello', { session: 'web:a', maySilent }))
  expect(result).toMatchObject({ text: said, finishReason })
  expect(events).toContainEqual(expect.objectContaining({ type: 'turn_completed', finish_reason: finishReason }))
  expect(JSON.stringify(model.asked[0]?.prompt).includes('answer only (silent)')).toBe(maySilent)
})

test('a turn that waits in the store may still be silent when it runs', async () => {
  const { agent, events } = testAgent({ models: [scriptedModel([{ text: '(silent)' }])] })
  const id = await agent.accept(request('hello', { session: 'web:a', maySilent: true }))
  await agent.ended(id)
  expect(events).toContainEqual(expect.objectContaining({ type: 'turn_completed', turn_id: id, finish_reason: 'silent' }))
  expect(
    parseTurnContext(queuedTurn({ ...request('hello', { maySilent: true }), id, agent: 'main', createdAtMs: 1 }).context),
  ).toMatchObject({
    maySilent: true,
  })
})
