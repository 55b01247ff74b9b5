import type { AdmissionStore, CountedLimits, Exceeded } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { hang, scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent, testTool } from '../testing/test-agent.ts'
import { Admission, type LimitedClient } from './admission.ts'

const NOON = Date.UTC(2026, 0, 31, 12)
const ANN: LimitedClient = { client: 'device:ann', standing: 'listed' }
const LIMITS: CountedLimits = { key: ANN.client, turnsPerHour: 2, turnsInFlight: 0, usdPerDay: 1 }
const FULL: Exceeded = { limit: 'turns_per_hour', key: ANN.client, value: 2, freeAtMs: NOON + 90_000 }

/** An admission whose store answers as given, and the calls of that store. */
function setUp(answers: { exceeded?: Exceeded; overspent?: () => Exceeded | undefined; limits?: readonly CountedLimits[] } = {}) {
  const clock = testClock(NOON)
  const { events, emitted } = testHost({ clock })
  const calls: unknown[] = []
  const note = <Value>(call: readonly unknown[], value: Value): Promise<Value> => {
    calls.push(call)
    return Promise.resolve(value)
  }
  const store: Partial<AdmissionStore> = {
    take: ({ id }) => note(['take', id], answers.exceeded),
    cancel: (id) => note(['cancel', id], undefined),
    spend: (keys, usd) => note(['spend', ...keys, usd], undefined),
    overspent: async () => answers.overspent?.(),
    hold: ({ client, cause }) => note(['hold', client, cause], true),
  }
  const limitsOf = ({ standing }: LimitedClient) => (standing === 'operator' ? [] : (answers.limits ?? [LIMITS]))
  const admission = new Admission({ store: store as AdmissionStore, clock, events, limitsOf })
  return { admission, clock, calls, emitted }
}

const usage = { input: 1000, output: 0 }
const cost = { prices: { 'scripted-1': { input: 500, output: 0 } } }

describe('a turn of a client with a limit', () => {
  test('is refused before anything is stored, and its key is free again', async () => {
    const { admission, calls, clock, emitted } = setUp({ exceeded: FULL })
    const { agent, books } = testAgent({ admission, clock, models: [scriptedModel([{ text: 'no' }])] })
    const turn = request('hi', { limited: ANN, idempotency: { scope: 's', key: 'k' } })
    const refused = { code: 'rate_limited', retryAfterSecs: 90, message: expect.stringContaining('the limit for messages: 2 an hour') }
    await expect(agent.run(turn)).rejects.toMatchObject(refused)
    await expect(agent.accept(turn)).rejects.toMatchObject(refused)
    expect(books.writes.filter((write) => !write.startsWith('release'))).toEqual([])
    expect(books.released).toHaveLength(2)
    expect(calls).toContainEqual(['hold', ANN.client, 'turns_per_hour'])
    expect(emitted).toContainEqual(
      expect.objectContaining({ type: 'limit_reached', client: ANN.client, until: '2026-01-31T12:01:30.000Z' }),
    )
  })

  test('gives its admission back when the queue is full', async () => {
    const { admission, calls, clock } = setUp()
    const limits = { max_concurrent_turns: 1, max_queued_turns: 0 }
    const { agent } = testAgent({ admission, clock, models: [scriptedModel([hang])], agent: limits })
    const stop = new AbortController()
    const first = agent.run(request('first', { session: 'a', signal: stop.signal })).catch(() => undefined)
    await expect(agent.run(request('second', { session: 'b', limited: ANN }))).rejects.toMatchObject({ code: 'unavailable' })
    expect(calls).toEqual([
      ['take', 'turn-2'],
      ['cancel', 'turn-2'],
    ])
    stop.abort()
    await first
  })

  test('records the cost of each model call and ends before the one that the limit refuses', async () => {
    const spent = { usd: 0 }
    const exceeded: Exceeded = { limit: 'usd_per_day', key: ANN.client, value: 1, freeAtMs: NOON + 12 * 3_600_000 }
    const { admission, calls, clock } = setUp({ overspent: () => (spent.usd >= 1 ? exceeded : undefined) })
    const model = scriptedModel([
      () => {
        spent.usd += 0.5
        return { calls: [{ name: 'look', input: {} }], usage }
      },
    ])
    const { agent, books } = testAgent({ admission, clock, cost, models: [model], tools: [testTool('look', () => 'seen')] })
    const failure = { code: 'rate_limited', message: expect.stringContaining('1 USD a day'), retryAfterSecs: 12 * 3600 }
    await expect(agent.run(request('go on', { limited: ANN }))).rejects.toMatchObject(failure)
    expect(calls.filter((call) => Array.isArray(call) && call[0] === 'spend')).toEqual([
      ['spend', ANN.client, 0.5],
      ['spend', ANN.client, 0.5],
    ])
    expect(books.ends).toMatchObject([{ status: 'failed' }])
  })

  test('keeps its client when it is stored', async () => {
    const { admission, clock } = setUp()
    const { agent, books } = testAgent({ admission, clock, models: [scriptedModel([{ text: 'done' }])] })
    const id = await agent.accept(request('later', { limited: ANN }))
    expect(books.queued.get(id)?.context).toMatchObject({ limited: ANN })
    await agent.ended(id)
  })
})

test('a client without a limit costs no call of the store', async () => {
  const { admission, calls, clock } = setUp({ limits: [] })
  const { agent } = testAgent({ admission, clock, cost, models: [scriptedModel([{ text: 'done', usage }])] })
  await agent.run(request('hi', { limited: ANN }))
  await agent.run(request('hi'))
  expect(calls).toEqual([])
})

test('too many turns in flight are refused without a record', async () => {
  const { admission, calls } = setUp({ exceeded: { limit: 'turns_in_flight', key: ANN.client, value: 1, freeAtMs: NOON } })
  const refused = { code: 'rate_limited', message: 'Only 1 of your turns may be in flight at once.', retryAfterSecs: 5 }
  await expect(admission.require(ANN, { id: 't', shard: 0 })).rejects.toMatchObject(refused)
  expect(calls).toEqual([['take', 't']])
})
