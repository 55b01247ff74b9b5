import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()
const HOUR_MS = 3_600_000

interface Answer {
  readonly range: string
  readonly hours: readonly { readonly at: string; readonly turns: number; readonly [member: string]: unknown }[]
}

async function arrange() {
  const { request, pair, runtime, clock } = gateway()
  const { token } = await pair('kitchen tablet')
  const get = async (query: string) => {
    const response = await request(`/api/history${query}`, { headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, json: (await response.json()) as Answer }
  }
  const { turns } = runtime.store
  const nowMs = clock.nowMs()
  const used = { inputTokens: 30, outputTokens: 12, costUsd: 0.5 }
  await turns.finish(turnEnd('t1', { endedAtMs: nowMs - HOUR_MS, model: 'small', ...used }))
  await turns.finish(turnEnd('t2', { endedAtMs: nowMs, model: 'small', ...used }))
  await turns.finish(turnEnd('t3', { endedAtMs: nowMs, model: 'small', agent: 'other', ...used }))
  const about = { turn_id: 't', session_id: null, source: 'telegram' }
  const end = { model: 'small', input_tokens: 30, output_tokens: 12, cost_usd: 0.5, finish_reason: 'stop' } as const
  runtime.bus.emit({ type: 'turn_completed', ...about, ...end, took_ms: 900 })
  runtime.bus.emit({ type: 'turn_failed', ...about, code: 'upstream', error: 'x' })
  runtime.bus.emit({ type: 'sop_run', run_id: 'r', sop: 'deploy', status: 'completed', step: 1, steps: 1, reason: null })
  return { get, nowMs }
}

test.each([
  ['', 'day', 24],
  ['?range=week', 'week', 168],
  ['?range=month', 'month', 744],
])('the range %s has each of its hours, the last one being the present one', async (query, range, count) => {
  const { get, nowMs } = await arrange()
  const { json } = await get(query)
  expect([json.range, json.hours.length]).toEqual([range, count])
  expect(json.hours.at(-1)).toEqual({
    at: new Date(Math.floor(nowMs / HOUR_MS) * HOUR_MS).toISOString(),
    turns: 2,
    failed: 1,
    p95_ms: expect.any(Number),
    queue_secs: 0,
    models: [{ model: 'small', input_tokens: 60, output_tokens: 24, cost_usd: 1 }],
  })
  expect(json.hours.at(-2)).toMatchObject({ turns: 0, p95_ms: null, models: [{ model: 'small', cost_usd: 0.5 }] })
})

test('one channel has its turns alone, and one procedure its runs', async () => {
  const { get } = await arrange()
  const last = async (query: string) => (await get(query)).json.hours.at(-1)
  expect(await last('?channel=telegram')).toMatchObject({ turns: 2, failed: 1, queue_secs: null, models: [] })
  expect(await last('?channel=slack')).toMatchObject({ turns: 0, queue_secs: null })
  expect(await last('?procedure=deploy')).toMatchObject({ turns: 1, failed: 0, p95_ms: null })
})

test.each(['?range=year', '?channel=a&procedure=b'])('%s is refused', async (query) => {
  const { get } = await arrange()
  expect((await get(query)).status).toBe(400)
})
