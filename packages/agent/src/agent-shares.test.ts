import { type ClientShares, NO_SHARES } from '@sluice/config'
import type { ModelMessage } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { until } from '@sluice/testkit/until'
import { expect, test } from 'vitest'
import { type Reply, scriptedModel } from './testing/scripted-model.ts'
import { request, type TestAgentOptions, testAgent, testTool } from './testing/test-agent.ts'
import type { LimitedClient } from './turn/admission.ts'
import { Shares } from './turn/shares.ts'
import type { ApprovedBy, TurnRequest } from './turn/turn.ts'

const ANN: LimitedClient = { client: 'device:ann', standing: 'listed' }
const BOB: LimitedClient = { client: 'device:bob', standing: 'listed' }
const OWNER: LimitedClient = { client: 'device:owner', standing: 'operator' }
const lastText = (prompt: readonly ModelMessage[]): string => {
  const part = prompt.at(-1)?.content[0]
  return typeof part === 'object' && part.type === 'text' ? part.text : ''
}

/** An agent whose clients have these shares, and whose model answers each text when the test says so. */
function sharing(shares: Partial<ClientShares>, options: TestAgentOptions = {}) {
  const clock = testClock()
  const sharesOf = ({ standing }: LimitedClient): ClientShares => (standing === 'operator' ? NO_SHARES : { ...NO_SHARES, ...shares })
  const subject = new Shares({ clock, events: testHost({ clock }).events, sharesOf })
  const waiting = new Map<string, (reply: Reply) => void>()
  const started: string[] = []
  const model = scriptedModel([
    ({ prompt }) => {
      const text = lastText(prompt)
      started.push(text)
      return new Promise<Reply>((resolve) => waiting.set(text, resolve))
    },
  ])
  const { agent, books } = testAgent({ models: [model], clock, shares: subject, ...options })
  return {
    agent,
    books,
    shares: subject,
    started,
    run: (limited: LimitedClient, text: string, more: Partial<TurnRequest> = {}) => {
      const ended = agent.run({ ...request(text), limited, ...more })
      ended.catch(() => undefined)
      return ended
    },
    begun: (count: number) => until(() => started.length === count),
    answer: (text: string) => waiting.get(text)?.({ text: `to ${text}` }),
  }
}

test('a client runs its share of turns, in order, while an operator and other clients begin at once', async () => {
  const { run, begun, started, answer } = sharing({ turnsRunning: 2 }, { agent: { max_concurrent_turns: 8 } })
  for (const text of ['a1', 'a2', 'a3', 'a4']) void run(ANN, text)
  void run(BOB, 'b1')
  const operator = run(OWNER, 'o1')
  await begun(4)
  expect(started).toEqual(['a1', 'a2', 'b1', 'o1'])
  answer('o1')
  await expect(operator).resolves.toMatchObject({ text: 'to o1' })
  answer('a1')
  await begun(5)
  expect(started.at(-1)).toBe('a3')
})

test.each([1, 2, 3])('clients together never keep an operator waiting, with %i turns at once', async (slots) => {
  const { run, begun, started, answer } = sharing({ turnsRunning: 1 }, { agent: { max_concurrent_turns: slots } })
  for (let n = 0; n < 5; n++) void run({ client: `device:${n}`, standing: 'listed' }, `c${n}`)
  const others = Math.max(1, slots - 1)
  await begun(others)
  const operator = run(OWNER, 'operator')
  await begun(others + 1)
  expect(started.at(-1)).toBe('operator')
  answer('operator')
  await expect(operator).resolves.toMatchObject({ text: 'to operator' })
  expect(started).toHaveLength(others + 1)
})

test('a turn beyond the share of waiting turns is refused, and its key is free again', async () => {
  const { run, begun, started, answer, books, agent } = sharing({ turnsRunning: 1, turnsWaiting: 2 })
  const refused = { code: 'share_used', retryAfterSecs: 5, message: expect.stringContaining('[limits] turns_waiting') }
  for (const text of ['a1', 'a2', 'a3']) void run(ANN, text)
  await begun(1)
  await expect(run(ANN, 'a4', { idempotency: { scope: 's', key: 'k' } })).rejects.toMatchObject(refused)
  await expect(agent.accept({ ...request('a5'), limited: ANN })).rejects.toMatchObject(refused)
  expect(books.released).toEqual(['k'])
  expect(books.writes).toEqual([])
  void run(BOB, 'b1')
  void run(OWNER, 'o1')
  answer('a1')
  await begun(4)
  expect(started).toEqual(['a1', 'b1', 'o1', 'a2'])
  void run(ANN, 'a6')
  await expect(run(ANN, 'a7')).rejects.toMatchObject(refused)
})

test('a text beyond the share of bytes is refused while turns wait, and aborted turns free their room', async () => {
  const { run, begun, shares } = sharing({ turnsRunning: 1, waitingBytes: 100 })
  void run(ANN, 'x'.repeat(1000))
  await begun(1)
  const abort = new AbortController()
  const waiting = run(ANN, 'é'.repeat(45), { signal: abort.signal })
  await expect(run(ANN, 'x'.repeat(11))).rejects.toMatchObject({ code: 'share_used', message: expect.stringContaining('waiting_mb') })
  expect(shares.heldBy(ANN, 'waitingBytes')).toBe(90)
  abort.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' })
  expect([shares.heldBy(ANN, 'waitingBytes'), shares.heldBy(ANN, 'turnsWaiting')]).toEqual([0, 0])
})

test('the full queue of other clients does not refuse an operator', async () => {
  const { run, begun } = sharing({ turnsRunning: 1 }, { agent: { max_concurrent_turns: 2, max_queued_turns: 1 } })
  for (const text of ['a1', 'a2']) void run(ANN, text)
  for (const text of ['o1', 'o2']) void run(OWNER, text)
  await begun(2)
  await expect(run(BOB, 'b1')).rejects.toMatchObject({ code: 'unavailable' })
  await expect(run(OWNER, 'o3')).rejects.toMatchObject({ code: 'unavailable' })
})

test('a turn that waits for a person counts as waiting', async () => {
  const questions: ((answer: ApprovedBy) => void)[] = []
  const model = scriptedModel([
    ({ prompt }) => (prompt.at(-1)?.role === 'tool' ? { text: 'done' } : { calls: [{ name: 'reach', input: {} }] }),
  ])
  const { run, shares } = sharing(
    { turnsRunning: 1, turnsWaiting: 2 },
    {
      models: [model],
      tools: [testTool('reach', () => 'ok', 'execute')],
      approve: () => new Promise((resolve) => questions.push(resolve)),
    },
  )
  const turns = [run(ANN, 'a1'), run(ANN, 'a2')]
  await until(() => questions.length === 2)
  expect(shares.heldBy(ANN, 'turnsWaiting')).toBe(2)
  await expect(run(ANN, 'a3')).rejects.toMatchObject({ code: 'share_used' })
  for (const answer of questions) answer({ by: 'device:owner', standing: 'operator' as const })
  await Promise.all(turns)
  expect(shares.heldBy(ANN, 'turnsWaiting')).toBe(0)
})

test('a long text waits in the store only, and is whole when its turn begins or ends', async () => {
  const { agent, books, run, begun, started, answer, shares } = sharing({ turnsRunning: 1 })
  const long = (name: string) => `${name} ${'x'.repeat(10_000)}`
  void run(ANN, 'first')
  await begun(1)
  const runs = await agent.accept({ ...request(long('runs')), limited: ANN })
  const aborted = await agent.accept({ ...request(long('aborted')), limited: ANN })
  expect(shares.heldBy(ANN, 'waitingBytes')).toBe(20_013)
  expect(agent.abort(aborted)).toBe(true)
  await agent.ended(aborted)
  answer('first')
  await begun(2)
  answer(long('runs'))
  await agent.ended(runs)
  expect(started.at(-1)).toBe(long('runs'))
  expect(books.ends.map(({ id, status, input }) => [id, status, input]).filter(([id]) => id !== 'turn-1')).toEqual([
    [aborted, 'aborted', long('aborted')],
    [runs, 'done', long('runs')],
  ])
})
