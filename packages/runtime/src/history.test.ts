import type { KeyValue } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { expect, test } from 'vitest'
import { History, HOURS_MAX } from './history.ts'

const HOUR_MS = 3_600_000

function arrange(keyValue: KeyValue = memoryKeyValue(), clock = testClock(), node: string | null = null) {
  const warnings: string[] = []
  const queue = { secs: 0 }
  const history = new History({
    clock,
    keyValue,
    node,
    log: { warn: (message) => void warnings.push(message) },
    waitedSecs: () => queue.secs,
  })
  const end = { input_tokens: 0, output_tokens: 0, cost_usd: 0, model: 'm', finish_reason: 'stop' } as const
  const about = (source: string) => ({ turn_id: 't', session_id: null, source })
  const done = (took_ms: number, source = 'api') => history.observe({ type: 'turn_completed', ...about(source), ...end, took_ms })
  const failed = (code = 'upstream', source = 'api') => history.observe({ type: 'turn_failed', ...about(source), code, error: 'x' })
  const run = (sop: string, status: 'running' | 'completed' | 'failed') =>
    history.observe({ type: 'sop_run', run_id: 'r', sop, status, step: 1, steps: 1, reason: null })
  return { history, keyValue, clock, queue, done, failed, run, warnings }
}

test('an hour counts turns, failures without aborted turns, durations and the longest wait', async () => {
  const { history, clock, queue, done, failed } = arrange()
  for (let turn = 0; turn < 95; turn++) done(100)
  for (let turn = 0; turn < 5; turn++) done(60_000)
  failed()
  failed('aborted')
  queue.secs = 40
  await history.save()
  queue.secs = 10
  await history.save()
  const [hour, ...others] = await history.list(clock.nowMs())
  expect(others).toEqual([])
  expect(hour).toMatchObject({ turns: 102, failed: 1, queueSecs: 40 })
  expect(hour?.p95Ms).toBeGreaterThanOrEqual(100)
  expect(hour?.p95Ms).toBeLessThanOrEqual(125)
})

test('a channel has its own turns, and a procedure its ended runs', async () => {
  const { history, done, failed, run } = arrange()
  done(100, 'telegram')
  failed('upstream', 'telegram')
  done(100, 'slack')
  run('deploy', 'running')
  run('deploy', 'completed')
  run('deploy', 'failed')
  expect(await history.list(0)).toMatchObject([{ turns: 3, failed: 1 }])
  expect(await history.list(0, { channel: 'telegram' })).toMatchObject([{ turns: 2, failed: 1, queueSecs: null }])
  expect(await history.list(0, { procedure: 'deploy' })).toMatchObject([{ turns: 2, failed: 1, p95Ms: null }])
  expect(await history.list(0, { procedure: 'telegram' })).toEqual([])
})

test('a restart keeps the hours, and goes on with the one that has begun', async () => {
  const first = arrange()
  first.done(100, 'telegram')
  await first.clock.advance(HOUR_MS)
  first.done(100, 'telegram')
  await first.history.save()
  const second = arrange(first.keyValue, first.clock)
  second.done(100, 'telegram')
  const turns = async (history: History) => (await history.list(0, { channel: 'telegram' })).map((hour) => hour.turns)
  expect(await Promise.all([turns(second.history), turns(second.history)])).toEqual([
    [1, 2],
    [1, 2],
  ])
  await Promise.all([second.history.save(), second.history.list(0)])
  second.done(100)
  await second.history.save()
  const third = arrange(first.keyValue, first.clock)
  expect(await turns(third.history)).toEqual([1, 2])
  expect((await third.history.list(0)).map((hour) => hour.turns)).toEqual([1, 3])
})

test('a clock that is set back overwrites nothing', async () => {
  const first = arrange()
  first.done(100)
  await first.history.save()
  await first.clock.advance(HOUR_MS)
  first.done(100)
  await first.history.save()
  const back = arrange(first.keyValue, testClock())
  back.done(100)
  await back.history.save()
  expect((await arrange(first.keyValue, first.clock).history.list(0)).map(({ turns }) => turns)).toEqual([2, 1])
})

test('only the last 31 days are kept, and an idle hour writes nothing', async () => {
  const { history, keyValue, clock, done } = arrange()
  for (let hour = 0; hour < HOURS_MAX + 10; hour++) {
    done(100)
    await history.save()
    await clock.advance(HOUR_MS)
  }
  const before = await keyValue.list('', 10_000)
  expect(before.length).toBeLessThanOrEqual(HOURS_MAX + 1)
  expect(before.length).toBeGreaterThanOrEqual(HOURS_MAX)
  await history.save()
  expect(await keyValue.list('', 10_000)).toEqual(before)
})

test('old hours go while a page reads the history before each save', async () => {
  const { history, keyValue, clock, done } = arrange()
  for (let hour = 0; hour < HOURS_MAX + 10; hour++) {
    done(100)
    await history.list(clock.nowMs())
    await history.save()
    await clock.advance(HOUR_MS)
  }
  expect((await keyValue.list('', 10_000)).length).toBeLessThanOrEqual(HOURS_MAX + 1)
})

test('the nodes of a cluster are added up', async () => {
  const one = arrange(undefined, undefined, 'one')
  const two = arrange(one.keyValue, one.clock, 'two')
  one.done(100)
  two.done(100)
  two.failed()
  await one.history.save()
  await two.history.save()
  expect(await one.history.list(0)).toMatchObject([{ turns: 3, failed: 1 }])
})

test('an hour is written later when the store could not write, and one of many channels stays small', async () => {
  const kept = memoryKeyValue()
  let isFull = true
  const setAll: KeyValue['setAll'] = (changes) => (isFull ? Promise.reject(new Error('full')) : kept.setAll(changes))
  const { history, clock, done, warnings } = arrange({ ...kept, setAll })
  for (let channel = 0; channel < 500; channel++) done(100, `channel-${channel}`)
  await history.save()
  expect(warnings).toHaveLength(1)
  await clock.advance(HOUR_MS)
  isFull = false
  await history.save()
  const rows = (await kept.list('', 10)) as { readonly value: { readonly of: object } }[]
  expect(rows.map(({ value }) => Object.keys(value.of).length)).toEqual([64])
  expect(await arrange(kept, clock).history.list(0)).toMatchObject([{ turns: 500 }])
})
