import type { Observation, SopDispatch } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { type SopBench, sopBench } from '../testing/bench.ts'
import { event, sop } from '../testing/samples.ts'

const HOUR_MS = 3_600_000

/** Fires the webhook of a procedure once. */
async function fire({ engine, settle }: Pick<SopBench, 'engine' | 'settle'>, name: string, part: Parameters<typeof event>[1] = {}) {
  const [dispatch] = await engine.fire(event(`/${name}`, part))
  await settle()
  return dispatch as SopDispatch & { readonly runId: string }
}
const bench = async (...args: Parameters<typeof sopBench>) => {
  const made = await sopBench(...args)
  const fireOne = (name: string, part?: Parameters<typeof event>[1]) =>
    fire({ engine: made.engine, settle: () => made.settle() }, name, part)
  const end = async (runId: string): Promise<void> => {
    made.agent.end(made.turnOf(runId), { status: 'done', response: 'ok' })
    await made.settle()
  }
  const statusOf = async (runId: string) => (await made.run(runId)).status
  return { made, fireOne, end, statusOf }
}

describe('a run that a limit holds back', () => {
  test('begins when the run before it has ended, in order', async () => {
    const { made, fireOne, end, statusOf } = await bench([sop('a')])
    const runs = [await fireOne('a'), await fireOne('a'), await fireOne('a')]
    expect(runs.map(({ status }) => status)).toEqual(['started', 'waiting', 'waiting'])
    for (const [at, { runId }] of runs.entries()) {
      expect(await Promise.all(runs.slice(at).map((run) => statusOf(run.runId)))).toEqual(
        ['running', 'waiting', 'waiting'].slice(0, 3 - at),
      )
      await end(runId)
      expect(await statusOf(runId)).toBe('completed')
    }
    expect(made.host.emitted.flatMap((one) => (one.type === 'sop_run' ? [one.status] : []))).toEqual([
      ...['running', 'waiting', 'waiting', 'completed', 'running', 'completed', 'running', 'completed'],
    ])
  })

  test.each(['a restart', 'no daemon'])('is kept over %s', async (what) => {
    const { made, fireOne, end } = await bench([sop('a')])
    const first = await fireOne('a')
    const second = what === 'a restart' ? await fireOne('a') : ((await made.other.fire(event('/a')))[0] as SopDispatch & { runId: string })
    await made.restart()
    expect((await made.run(second.runId)).status).toBe('waiting')
    await end(first.runId)
    expect((await made.run(second.runId)).status).toBe('running')
  })

  test('begins after a crash between the end of one run and the start of the next', async () => {
    const { made, fireOne, statusOf } = await bench([sop('a')])
    const [first, second] = [await fireOne('a'), await fireOne('a')]
    const run = await made.run(first.runId)
    await made.store.advance(run, { ...run, status: 'completed', endedAtMs: made.host.clock.nowMs() }, [])
    await made.restart()
    expect(await statusOf(second.runId)).toBe('running')
  })

  test('begins when another process has freed its slot', async () => {
    const { made, fireOne, statusOf } = await bench([sop('a')])
    const [first, second] = [await fireOne('a'), await fireOne('a')]
    await made.other.cancel(first.runId, 'cli:anna', 'enough')
    expect(await statusOf(second.runId)).toBe('waiting')
    await made.engine.refresh()
    await made.settle()
    expect(await statusOf(second.runId)).toBe('running')
  })

  test('begins once in two processes that look at the same time', async () => {
    const { made, fireOne } = await bench([sop('a', { mode: 'supervised' })])
    const [first, second] = [await fireOne('a'), await fireOne('a')]
    const other = made.newProcess()
    await other.resume({ sops: made.store })
    await made.engine.cancel(first.runId, 'cli:anna', 'enough')
    await other.refresh()
    await made.settle()
    expect(await made.kinds(second.runId)).toEqual(['run_waiting', 'run_started', 'approval_requested'])
  })

  test('begins by priority, then by age, under the limit of all procedures', async () => {
    const { made, fireOne, end, statusOf } = await bench([
      sop('busy'),
      sop('low', { priority: 'low' }),
      sop('urgent', { priority: 'critical' }),
      sop('late', { priority: 'critical' }),
    ])
    made.settings.max_concurrent_total = 1
    const [busy, low, urgent, late] = [await fireOne('busy'), await fireOne('low'), await fireOne('urgent'), await fireOne('late')]
    for (const next of [busy, urgent, late, low]) {
      expect(await statusOf(next.runId)).toBe('running')
      await end(next.runId)
    }
  })

  test('waits for the end of a run that waits for a person, unless its procedure does not count that', async () => {
    const steps = [{ kind: 'checkpoint' } as const, {}]
    const { made, fireOne, statusOf } = await bench([sop('a', { steps }), sop('b', { steps, countWaiting: false, maxConcurrent: 1 })])
    made.settings.max_concurrent_total = 1
    const all = [await fireOne('a'), await fireOne('a'), await fireOne('b'), await fireOne('b')]
    expect(all.map(({ status }) => status)).toEqual(['started', 'waiting', 'started', 'started'])
    await made.decide(all[0]?.runId ?? '', 'rejected')
    expect(await statusOf(all[1]?.runId ?? '')).toBe('paused_checkpoint')
  })

  test('begins when its procedure has cooled down, and an event for a free slot is skipped meanwhile', async () => {
    const { made, fireOne, end, statusOf } = await bench([sop('a', { cooldownSecs: 90 })])
    const [first, second] = [await fireOne('a'), await fireOne('a')]
    await end(first.runId)
    await made.host.advance(89_000)
    expect(await statusOf(second.runId)).toBe('waiting')
    await made.host.advance(1_000)
    expect(await statusOf(second.runId)).toBe('running')
    await end(second.runId)
    expect(await fireOne('a')).toMatchObject({ status: 'skipped', reason: 'cooling down for another 90 s' })
  })

  test('expires after the longest wait, is reported, and can be replayed once', async () => {
    const observed: Observation[] = []
    const { made, fireOne, end, statusOf } = await bench([sop('a', { cooldownSecs: 60 })], { observe: (seen) => void observed.push(seen) })
    const first = await fireOne('a')
    const second = await fireOne('a', { payload: '{"n":2}' })
    await made.host.advance(24 * HOUR_MS - 1)
    expect(await statusOf(second.runId)).toBe('waiting')
    await made.host.advance(1)
    expect(await made.run(second.runId)).toMatchObject({ status: 'expired', reason: expect.stringContaining('max_concurrent = 1') })
    expect(made.host.logs.map(({ message }) => message)).toEqual(['procedure run expired: no slot was free in time'])
    expect(observed).toMatchObject([
      { kind: 'sop_run', outcome: 'waiting' },
      { kind: 'sop_run', outcome: 'expired' },
    ])
    await end(first.runId)
    const replayed = await made.engine.replay(second.runId, 'cli:anna')
    await made.settle()
    expect(await made.run(replayed)).toMatchObject({ status: 'running', event: { payload: '{"n":2}', by: 'cli:anna' } })
    expect(await made.engine.replay(second.runId, 'cli:anna')).toBe(replayed)
    await expect(made.engine.replay(replayed, 'cli:anna')).rejects.toMatchObject({ code: 'conflict' })
  })

  test('does not expire because the clock is a year ahead for a while', async () => {
    const { made, fireOne, end, statusOf } = await bench([sop('a')])
    const [first, second] = [await fireOne('a'), await fireOne('a')]
    made.host.clock.jump(365 * 24 * HOUR_MS)
    await made.host.advance(HOUR_MS)
    expect(await statusOf(second.runId)).toBe('waiting')
    made.host.clock.jump(-365 * 24 * HOUR_MS)
    await end(first.runId)
    expect(await statusOf(second.runId)).toBe('running')
  })

  test('can be cancelled, and then never begins', async () => {
    const { made, fireOne, end, statusOf } = await bench([sop('a')])
    const [first, second] = [await fireOne('a'), await fireOne('a')]
    await made.engine.cancel(second.runId, 'cli:anna', 'enough')
    await end(first.runId)
    expect(await statusOf(second.runId)).toBe('cancelled')
    expect(await made.kinds(second.runId)).toEqual(['run_waiting', 'run_cancelled'])
  })

  test('of a cron trigger is the newest one', async () => {
    const { made } = await bench([sop('a')])
    const tick = (payload: string) => made.engine.fireOne('a', event('0 9 * * *', { source: 'cron', payload, key: payload }))
    for (const payload of ['1', '2', '3']) await tick(payload)
    expect((await made.store.runs({ limit: 10 })).map(({ status, event }) => [status, event.payload])).toEqual([
      ['waiting', '3'],
      ['running', '1'],
    ])
  })

  test('that is one too many is refused for a sender that repeats it, and skipped for any other', async () => {
    const { made, fireOne } = await bench([sop('a', { maxWaiting: 1 })])
    await fireOne('a')
    await fireOne('a')
    await expect(made.engine.fire(event('/a'), { repeats: true })).rejects.toMatchObject({ code: 'unavailable' })
    expect(await fireOne('a')).toMatchObject({ status: 'skipped' })
  })

  test('begins one by one after its procedure was removed', async () => {
    const definitions = [sop('a', { maxConcurrent: 2 })]
    const { fireOne, end, statusOf } = await bench(definitions)
    const all = [await fireOne('a'), await fireOne('a'), await fireOne('a'), await fireOne('a')]
    definitions.length = 0
    await end(all[0]?.runId ?? '')
    expect(await statusOf(all[2]?.runId ?? '')).toBe('waiting')
    await end(all[1]?.runId ?? '')
    expect(await Promise.all(all.slice(2).map(({ runId }) => statusOf(runId)))).toEqual(['running', 'waiting'])
  })

  test('is looked for again when the store fails', async () => {
    const { made, fireOne, end, statusOf } = await bench([sop('a')])
    const [first, second] = [await fireOne('a'), await fireOne('a')]
    const { waiting } = made.store
    let failures = 1
    made.store.waiting = async () => {
      if (failures-- > 0) throw new Error('the disk is busy')
      return waiting()
    }
    await end(first.runId)
    expect(await statusOf(second.runId)).toBe('waiting')
    await made.host.advance(5_000)
    expect(await statusOf(second.runId)).toBe('running')
  })
})
