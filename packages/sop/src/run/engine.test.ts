import { AppError, type MessageNews, type Observation, type SopRun, senderKey } from '@sluice/sdk'
import { describe, expect, test, vi } from 'vitest'
import { sopBench } from '../testing/bench.ts'
import { event, sop } from '../testing/samples.ts'

const HOUR_MS = 3_600_000

describe('triggers', () => {
  test('start every matching procedure within its own limits', async () => {
    const both = [sop('a'), sop('b', { triggers: [{ type: 'webhook', path: '/a', condition: null }], maxConcurrent: 2 })]
    const { engine } = await sopBench(both)
    expect(await engine.fire(event('/a'))).toMatchObject([
      { sop: 'a', status: 'started' },
      { sop: 'b', status: 'started' },
    ])
    expect(await engine.fire(event('/a'))).toMatchObject([
      { sop: 'a', status: 'waiting', reason: 'too many runs of this procedure (max_concurrent = 1)' },
      { sop: 'b', status: 'started' },
    ])
  })

  test('start nothing for an event without a match', async () => {
    const { engine, store } = await sopBench([sop('a')])
    expect(await engine.fire(event('/b'))).toEqual([])
    expect(await store.audit({ limit: 10 })).toEqual([])
  })

  test('start nothing for a repeated event and return the first result', async () => {
    const { engine, store } = await sopBench([sop('a', { maxConcurrent: 5 })])
    const first = await engine.fire(event('/a', { key: 'k' }))
    expect(await engine.fire(event('/a', { key: 'k' }))).toEqual(first)
    expect(await store.runs({ limit: 10 })).toHaveLength(1)
  })

  test('start again for a run that failed or was cancelled, once each, from the first step and with the same event', async () => {
    const bench = await sopBench([sop('a', { cooldownSecs: 3600 })])
    const { engine, agent } = bench
    const failed = await bench.fire('a')
    await expect(engine.replay(failed, 'cli:anna')).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('running') })
    agent.end(bench.turnOf(failed), { status: 'aborted' })
    await bench.settle()
    const again = await engine.replay(failed, 'cli:anna')
    await bench.settle()
    const { event: before } = await bench.run(failed)
    expect(before.by).not.toBe('cli:anna')
    expect(await bench.run(again)).toMatchObject({
      status: 'running',
      step: 1,
      event: { payload: before.payload, topic: '/a', by: 'cli:anna' },
    })
    expect(await engine.replay(failed, 'cli:bob')).toBe(again)
    expect(await bench.store.audit({ limit: 10 })).toContainEqual(
      expect.objectContaining({ kind: 'run_started', run: again, by: 'cli:anna' }),
    )
    await engine.cancel(again, 'cli:anna', 'enough')
    const third = await engine.replay(again, 'cli:anna')
    await bench.settle()
    agent.end(bench.turnOf(third), { status: 'done', response: 'ok' })
    await bench.settle()
    await expect(engine.replay(third, 'cli:anna')).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('failed, cancelled or expired'),
    })
  })

  test('record a start before its first step, and a skipped trigger', async () => {
    const bench = await sopBench([sop('a', { maxWaiting: 0 })])
    const runId = await bench.fire('a')
    await bench.engine.fire(event('/a'))
    expect(await bench.kinds(runId)).toEqual(['run_started', 'step_started'])
    expect(await bench.store.audit({ limit: 10 })).toContainEqual(expect.objectContaining({ kind: 'trigger_skipped', sop: 'a', run: null }))
  })

  test('emit events and a log line for starts, steps, ends and skipped triggers', async () => {
    const bench = await sopBench([sop('a', { maxWaiting: 0 })])
    const runId = await bench.fire('a')
    await bench.engine.fire(event('/a'))
    bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'ok' })
    await bench.settle()
    const emitted = bench.host.emitted.map((e) => [e.type, 'status' in e ? e.status : 'reason' in e ? e.reason : null])
    expect(emitted).toEqual([
      ['sop_run', 'running'],
      ['sop_step', 'started'],
      ['sop_skipped', expect.stringContaining('max_concurrent = 1')],
      ['sop_step', 'completed'],
      ['sop_run', 'completed'],
    ])
    expect(bench.host.logs).toMatchObject([{ message: 'procedure trigger skipped' }])
  })

  test('report ended steps and runs to observers, in the trace of the event', async () => {
    const observed: Observation[] = []
    const bench = await sopBench([sop('a')], { observe: (seen) => void observed.push(seen) })
    const [dispatch] = await bench.engine.fire(event('/a', { trace: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` }))
    await bench.settle()
    const runId = dispatch?.status === 'started' ? dispatch.runId : ''
    await bench.host.advance(40)
    expect(observed).toEqual([])
    bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'ok' })
    await bench.settle()
    const [step, run] = observed
    expect(observed.map(({ kind }) => kind)).toEqual(['sop_step', 'sop_run'])
    expect(run).toMatchObject({ sop: 'a', outcome: 'completed', span: { tookMs: 40, trace: { parentId: 'b'.repeat(16) } } })
    expect(step).toMatchObject({ sop: 'a', step: 1, outcome: 'completed', span: { tookMs: 40, trace: { traceId: 'a'.repeat(32) } } })
  })

  test('are ignored when a run is started by name; an unknown name suggests the nearest', async () => {
    const { engine } = await sopBench([sop('deploy', { triggers: [], maxWaiting: 0 }), sop('off', { maxConcurrent: 0 })])
    const runId = await engine.run('deploy', { payload: null, atMs: 0, by: 'cli:anna' })
    expect(await engine.get(runId)).toMatchObject({ sop: 'deploy', event: { source: 'manual', topic: 'deploy' } })
    await expect(engine.run('deply', { payload: null, atMs: 0, by: 'cli:anna' })).rejects.toThrow(
      expect.objectContaining({ code: 'not_found', message: 'There is no procedure "deply"; is it "deploy"?' }),
    )
    await expect(engine.run('deploy', { payload: null, atMs: 0, by: 'cli:anna' })).rejects.toThrow(
      expect.objectContaining({ code: 'unavailable' }),
    )
    await expect(engine.run('off', { payload: null, atMs: 0, by: 'cli:anna' })).rejects.toThrow(
      expect.objectContaining({ code: 'conflict', message: expect.stringContaining('max_concurrent = 0') }),
    )
  })

  test('let a procedure start itself at most eight times in a row', async () => {
    for (const mode of ['deterministic', 'auto'] as const) {
      const bench = await sopBench([sop('a', { mode, maxConcurrent: 99, steps: [{ tools: ['again'] }] })])
      const again = (turn: string) => bench.engine.run('a', { payload: null, atMs: 0, by: `turn:${turn}` })
      bench.agent.tools.set('again', { risk: 'execute', run: (_input, { turn }) => again(turn) })
      let runId = await bench.fire('a')
      if (mode === 'auto') {
        for (let more = 0; more < 8; more++) {
          runId = await again(bench.turnOf(runId))
          await bench.settle()
        }
        await expect(again(bench.turnOf(runId))).rejects.toMatchObject({
          code: 'conflict',
          message: expect.stringContaining('8 runs in a row'),
        })
      }
      await bench.settle()
      const runs = await bench.store.runs({ limit: 100 })
      expect(runs.map(({ event }) => event.depth ?? 0)).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 0])
    }
  })

  test('that a step starts belong to the person who started the run of the step', async () => {
    for (const about of [{ starter: 'device:d1', standing: 'client', session: 'd1/s' } as const, {}]) {
      const bench = await sopBench([sop('a', { mode: 'deterministic', steps: [{ tools: ['again'] }] }), sop('b')])
      const again = (turn: string) =>
        bench.engine.run('b', { payload: null, atMs: 0, by: `turn:${turn}`, starter: 'sop:a', standing: 'operator' })
      bench.agent.tools.set('again', { risk: 'execute', run: (_input, { turn }) => again(turn) })
      await bench.engine.run('a', { payload: null, atMs: 0, by: 'test', ...about })
      await bench.settle()
      const runs = await bench.store.runs({ limit: 100 })
      expect(runs.map(({ sop, event: { starter, standing, session } }) => ({ sop, starter, standing, session }))).toEqual([
        { sop: 'b', starter: undefined, standing: undefined, session: undefined, ...about },
        { sop: 'a', starter: undefined, standing: undefined, session: undefined, ...about },
      ])
    }
  })

  test('are listed with the number of unfinished runs', async () => {
    const bench = await sopBench([sop('a'), sop('b')])
    const runId = await bench.fire('a')
    expect(bench.engine.list()).toMatchObject([
      { name: 'a', activeRuns: 1, steps: 1, triggers: ['webhook:/a'] },
      { name: 'b', activeRuns: 0 },
    ])
    bench.agent.end(bench.turnOf(runId), { status: 'done' })
    await bench.settle()
    expect(bench.engine.list()[0]).toMatchObject({ activeRuns: 0 })
  })
})

describe('agent steps', () => {
  test('have only the tools of the step and the reporting tools', async () => {
    const bench = await sopBench([sop('a', { steps: [{ tools: ['shell'] }] })])
    const runId = await bench.fire('a')
    expect(bench.agent.turns.get(bench.turnOf(runId))?.tools).toEqual(['shell', 'sop_status', 'sop_advance'])
  })

  test('share one session and get the previous result', async () => {
    const bench = await sopBench([sop('a', { steps: [{}, {}] })])
    const runId = await bench.fire('a')
    bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'version 7' })
    await bench.settle()
    const second = bench.agent.turns.get(bench.turnOf(runId))
    expect(second).toMatchObject({ session: `sop:${runId}`, text: expect.stringContaining('version 7') })
    bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'fine' })
    await bench.settle()
    expect(await bench.run(runId)).toMatchObject({ status: 'completed', results: [{ output: 'version 7' }, { output: 'fine' }] })
  })

  test('end as the agent has reported once their turn is done', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    await bench.engine.report(runId, bench.turnOf(runId), { status: 'failed', output: 'no access' })
    expect(await bench.run(runId)).toMatchObject({ status: 'running' })
    bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'sorry' })
    await bench.settle()
    expect(await bench.run(runId)).toMatchObject({ status: 'failed', reason: 'Step 1 failed: no access' })
  })

  test('accept a report only from their own turn', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    await expect(bench.engine.report(runId, 'another', { status: 'completed', output: '' })).rejects.toMatchObject({ code: 'conflict' })
    await expect(bench.engine.report('nothing', 'another', { status: 'completed', output: '' })).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  test('refuse a report that does not fit the output schema', async () => {
    const bench = await sopBench([sop('a', { steps: [{ output: { type: 'object', required: ['n'] } }] })])
    const runId = await bench.fire('a')
    expect([...bench.agent.turns.values()][0]?.text).toContain('{"type":"object","required":["n"]}')
    const report = (output: string) => bench.engine.report(runId, bench.turnOf(runId), { status: 'completed', output })
    await expect(report('done')).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('schema') })
    await report('{"n":1}')
    bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'done' })
    await vi.waitUntil(async () => (await bench.run(runId)).status !== 'running')
    expect(await bench.run(runId)).toMatchObject({ status: 'completed', results: [{ output: '{"n":1}' }] })
  })

  test('fail when a response without a report does not fit the output schema', async () => {
    const bench = await sopBench([sop('a', { steps: [{ output: { type: 'object' } }] })])
    const runId = await bench.fire('a')
    bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'all is well' })
    await vi.waitUntil(async () => (await bench.run(runId)).status !== 'running')
    expect(await bench.run(runId)).toMatchObject({ status: 'failed', reason: expect.stringContaining('does not fit its schema') })
  })

  test('are attempted five times when no model has answered', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    const turns = new Set<string>()
    for (let attempt = 1; attempt <= 5; attempt++) {
      turns.add(bench.turnOf(runId))
      bench.agent.end(bench.turnOf(runId), { status: 'failed', error: { code: 'unavailable', message: 'no model' } })
      await bench.host.advance(60_000)
    }
    expect(turns.size).toBe(5)
    expect(await bench.run(runId)).toMatchObject({
      status: 'failed',
      reason: 'Step 1 failed: no model (unavailable), in each of 5 attempts',
    })
  })

  test('are attempted once when the model refuses', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    bench.agent.end(bench.turnOf(runId), { status: 'failed', error: { code: 'upstream', message: 'wrong key', refusedFor: 'credentials' } })
    await bench.settle()
    expect(await bench.run(runId)).toMatchObject({ status: 'failed', reason: 'Step 1 failed: wrong key (upstream)' })
    expect(bench.agent.turns.size).toBe(1)
  })

  test.each([
    ['the model is away', { code: 'upstream', message: 'overloaded', isPassing: true }],
    ['a limit in dollars is reached', { code: 'rate_limited', message: 'the budget is used up' }],
  ] as const)('are attempted for max_age_hours while %s', async (_while, error) => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    for (let attempt = 0; attempt < 100; attempt++) {
      bench.agent.end(bench.turnOf(runId), { status: 'failed', error })
      await bench.host.advance(300_000)
    }
    expect(await bench.run(runId)).toMatchObject({ status: 'running' })
    bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'fine' })
    await bench.settle()
    expect(await bench.run(runId)).toMatchObject({ status: 'completed' })

    const second = await bench.fire('a')
    const beganMs = bench.host.clock.nowMs()
    while ((await bench.run(second)).status === 'running' && bench.host.clock.nowMs() < beganMs + 100 * HOUR_MS) {
      // The time that an attempt takes counts too.
      await bench.host.advance(600_000)
      bench.agent.end(bench.turnOf(second), { status: 'failed', error })
      await bench.host.advance(300_000)
    }
    const tookMs = bench.host.clock.nowMs() - beganMs
    expect(tookMs).toBeGreaterThanOrEqual(24 * HOUR_MS)
    expect(tookMs).toBeLessThan(25 * HOUR_MS)
    expect(await bench.run(second)).toMatchObject({ status: 'failed' })
  })

  test('wait for a person when they failed after a model had answered', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    const turn = bench.agent.turns.get(bench.turnOf(runId))
    if (turn) turn.hasAnswer = true
    bench.agent.end(bench.turnOf(runId), { status: 'failed', error: { code: 'upstream', message: 'cut' } })
    await bench.settle()
    expect(await bench.run(runId)).toMatchObject({ status: 'waiting_approval', gate: { why: 'again' } })
    await bench.decide(runId, 'approved')
    bench.agent.end(bench.turnOf(runId), { status: 'done' })
    await bench.settle()
    expect(await bench.run(runId)).toMatchObject({ status: 'completed' })
  })

  test('are offered again while the agent is busy', async () => {
    const bench = await sopBench([sop('a')])
    bench.agent.refusal = new AppError('unavailable', 'Too many turns are waiting')
    const runId = await bench.fire('a')
    expect(bench.agent.live).toEqual([])
    await bench.host.advance(1000)
    expect(bench.turnOf(runId)).toBeDefined()
    expect((await bench.run(runId)).attempt?.number).toBe(1)
  })

  test('fail when the agent refuses them permanently', async () => {
    const bench = await sopBench([sop('a')])
    bench.agent.refusal = new AppError('too_large', 'The message is too large')
    expect(await bench.run(await bench.fire('a'))).toMatchObject({ status: 'failed', reason: 'Step 1 failed: The message is too large' })
  })

  test('that hang do not delay other runs', async () => {
    const bench = await sopBench([sop('a'), sop('b')])
    await bench.fire('a')
    const runId = await bench.fire('b')
    bench.agent.end(bench.turnOf(runId), { status: 'done' })
    await bench.settle()
    expect(await bench.run(runId)).toMatchObject({ status: 'completed' })
  })
})

describe('gates', () => {
  test('ask with the step and the origin of the event', async () => {
    const bench = await sopBench([
      sop('a', { mode: 'supervised', steps: [{ title: 'Roll out', body: 'To all servers', tools: ['shell'] }] }),
    ])
    await bench.engine.fire(event('/a', { payload: '{"v":7}\u0007' }))
    await bench.settle()
    expect(bench.approvals.all()).toMatchObject([
      {
        gate: 'sop',
        stepId: 'step-1',
        workflow: 'a',
        title: 'a: step 1 of 1: Roll out',
        message: 'To all servers\nTools: shell\nStarted by device:1: webhook /a\nPayload: {"v":7}',
        state: 'pending',
      },
    ])
  })

  test('let a run go on when approved, and cancel it when rejected or expired', async () => {
    const bench = await sopBench([sop('a', { mode: 'supervised', maxConcurrent: 3 })])
    const [approved, rejected, expired] = [await bench.fire('a'), await bench.fire('a'), await bench.fire('a')]
    await bench.decide(approved, 'approved')
    await bench.decide(rejected, 'rejected', 'not today')
    await bench.decide(expired, 'expired')
    expect(bench.turnOf(approved)).toBeDefined()
    expect(await bench.run(rejected)).toMatchObject({ status: 'cancelled', reason: 'Rejected by chat:anna: not today' })
    expect(await bench.run(expired)).toMatchObject({ status: 'cancelled', reason: expect.stringContaining('No answer arrived in time') })
    expect(bench.approvals.all().every(({ acknowledgedAtMs }) => acknowledgedAtMs !== null)).toBe(true)
  })

  test('expire after the configured time, except checkpoints', async () => {
    const bench = await sopBench([sop('a', { steps: [{ kind: 'checkpoint' }, {}] }), sop('b', { mode: 'supervised' })])
    await bench.fire('a')
    await bench.fire('b')
    expect(bench.approvals.all().map(({ expiresAtMs, createdAtMs }) => expiresAtMs && expiresAtMs - createdAtMs)).toEqual([null, 300_000])
  })

  test('are approved by the id of the run; a run that does not wait is a conflict', async () => {
    const bench = await sopBench([sop('a', { mode: 'supervised' })])
    const runId = await bench.fire('a')
    expect(await bench.engine.approve(runId, 'cli:anna')).toMatchObject({ status: 'running' })
    await expect(bench.engine.approve(runId, 'cli:anna')).rejects.toMatchObject({ code: 'conflict' })
    await expect(bench.engine.approve('nothing', 'cli:anna')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('cannot be approved by a model', async () => {
    const bench = await sopBench([sop('a', { mode: 'supervised' })])
    const runId = await bench.fire('a')
    await expect(bench.engine.approve(runId, 'turn:t1')).rejects.toMatchObject({ code: 'forbidden' })
    expect(await bench.run(runId)).toMatchObject({ status: 'waiting_approval' })
  })

  test('have one outcome when two people decide at once', async () => {
    const bench = await sopBench([sop('a', { mode: 'supervised' })])
    const runId = await bench.fire('a')
    await Promise.allSettled([bench.decide(runId, 'rejected'), bench.engine.approve(runId, 'cli:anna'), bench.decide(runId, 'expired')])
    const decided = (await bench.kinds(runId)).filter((kind) => ['approved', 'rejected', 'expired'].includes(kind))
    expect(decided).toEqual(['rejected'])
  })

  test('hold no timers for a thousand waiting runs', async () => {
    const bench = await sopBench([sop('a', { mode: 'supervised', maxConcurrent: 1000 })])
    bench.settings.max_concurrent_total = 1000
    const timers = bench.host.clock.sleeping
    await Promise.all(Array.from({ length: 1000 }, () => bench.engine.fire(event('/a'))))
    await bench.settle()
    expect(bench.approvals.all()).toHaveLength(1000)
    expect(bench.host.clock.sleeping).toBe(timers)
  })
})

describe('cancelling', () => {
  test('aborts the turn of a running step', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    const turn = bench.turnOf(runId)
    expect(await bench.engine.cancel(runId, 'cli:anna', 'enough')).toMatchObject({ status: 'cancelled', reason: 'enough' })
    await bench.settle()
    expect(bench.agent.turns.get(turn)?.status).toBe('aborted')
    expect(await bench.kinds(runId)).toEqual(['run_started', 'step_started', 'run_cancelled'])
    await expect(bench.engine.cancel(runId, 'cli:anna', 'enough')).rejects.toMatchObject({ code: 'conflict' })
  })

  test('withdraws the question of a waiting run', async () => {
    const bench = await sopBench([sop('a', { mode: 'supervised' })])
    const runId = await bench.fire('a')
    await bench.engine.cancel(runId, 'cli:anna', 'enough')
    await bench.settle()
    expect(bench.approvals.all()).toMatchObject([{ state: 'cancelled', by: 'system' }])
  })

  test('follows from a withdrawn question', async () => {
    const bench = await sopBench([sop('a', { mode: 'supervised' })])
    const runId = await bench.fire('a')
    await bench.decide(runId, 'cancelled')
    expect(await bench.run(runId)).toMatchObject({ status: 'cancelled' })
  })
})

describe('the person whose message started a run', () => {
  const ORIGIN = { channel: 'chat', account: '', to: { to: 'anna' }, sender: 'anna' }
  const NEWS: MessageNews = { held: { client: 'anna', cause: 'unanswered', sinceMs: 0, untilMs: 0 }, quietMs: 0, notice: [] }

  /** Resolves to a bench, and the ends that a person is told. */
  async function telling() {
    const told: [run: string, status: string][] = []
    const newsOf = ({ id, status }: SopRun) => {
      told.push([id, status])
      return NEWS
    }
    const bench = await sopBench([sop('a', { mode: 'supervised', maxConcurrent: 9 })], { starters: { newsOf, queued: () => {} } })
    const fire = async (by = 'chat:bob') => {
      const [dispatch] = await bench.engine.fire(event('/a', { by, origin: ORIGIN }))
      await bench.settle()
      return dispatch?.status === 'started' ? dispatch.runId : expect.fail('it was not started')
    }
    return { bench, told, fire }
  }

  test.each(['rejected', 'expired', 'cancelled'] as const)('is told when the question of the run is %s', async (state) => {
    const { bench, told, fire } = await telling()
    const runId = await fire()
    await bench.decide(runId, state)
    expect(told).toEqual([[runId, 'cancelled']])
  })

  test('is told when a step fails, and not when all steps are done', async () => {
    const { bench, told, fire } = await telling()
    const [failing, working] = [await fire(), await fire()]
    for (const runId of [failing, working]) await bench.decide(runId, 'approved')
    bench.agent.end(bench.turnOf(working), { status: 'done', response: 'done' })
    await bench.engine.report(failing, bench.turnOf(failing), { status: 'failed', output: 'no' })
    bench.agent.end(bench.turnOf(failing), { status: 'done', response: 'no' })
    await bench.settle()
    expect(told).toEqual([[failing, 'failed']])
  })

  test('is not told about a rejection of their own, but about an operator who cancels', async () => {
    const { bench, told, fire } = await telling()
    await bench.decide(await fire('chat:anna'), 'rejected')
    expect(told).toEqual([])
    const runId = await fire()
    await bench.engine.cancel(runId, 'cli:operator', 'enough')
    expect(told).toEqual([[runId, 'cancelled']])
  })

  test('whose turn started it is not told about a rejection of their own, but about one of another person', async () => {
    const { bench, told } = await telling()
    const run = async (sender: string) => {
      const starter = senderKey('chat', { account: '', sender })
      const runId = await bench.engine.run('a', { payload: null, atMs: 0, by: 'turn:t', starter, standing: 'listed', session: 's' })
      await bench.settle()
      return runId
    }
    await bench.decide(await run('anna'), 'rejected')
    expect(told).toEqual([])
    const runId = await run('bob')
    await bench.decide(runId, 'rejected')
    expect(told).toEqual([[runId, 'cancelled']])
  })
})

describe('other processes', () => {
  test('start runs that a refresh picks up', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.other.run('a', { payload: null, atMs: 0, by: 'cli:anna' })
    await bench.settle()
    expect(bench.agent.live).toEqual([])
    await bench.engine.refresh()
    await bench.settle()
    expect(bench.turnOf(runId)).toBeDefined()
  })

  test('cancel runs that a refresh releases', async () => {
    const bench = await sopBench([sop('a'), sop('b', { mode: 'supervised' })])
    const [running, waiting] = [await bench.fire('a'), await bench.fire('b')]
    for (const runId of [running, waiting]) await bench.other.cancel(runId, 'cli:anna', 'enough')
    await bench.engine.refresh()
    await bench.settle()
    expect(bench.agent.live).toEqual([])
    expect(bench.approvals.all()).toMatchObject([{ state: 'cancelled' }])
    expect(bench.engine.list().map(({ activeRuns }) => activeRuns)).toEqual([0, 0])
  })
})

describe('after a restart', () => {
  test('a step waits for its stored turn', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    const turn = bench.turnOf(runId)
    await bench.restart()
    expect(bench.turnOf(runId)).toBe(turn)
    bench.agent.end(turn, { status: 'done', response: 'ok' })
    await bench.settle()
    expect(await bench.run(runId)).toMatchObject({ status: 'completed' })
    expect(bench.agent.turns.size).toBe(1)
  })

  test('a step offers its turn again under the same id', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    const turn = bench.turnOf(runId)
    bench.agent.turns.delete(turn)
    await bench.restart()
    expect(bench.turnOf(runId)).toBe(turn)
  })

  test('a decision made in between is applied without asking again', async () => {
    const bench = await sopBench([sop('a', { mode: 'supervised' })])
    const runId = await bench.fire('a')
    const { approvals } = bench
    const restarted = bench.restart()
    await approvals.decide({ runId, stepId: 'step-1' }, { state: 'approved', by: 'chat:anna', who: { standing: 'listed', isAsked: true } })
    await restarted
    expect(bench.turnOf(runId)).toBeDefined()
    expect(bench.approvals.all()).toHaveLength(1)
  })

  test('the turn of a run cancelled in between is aborted', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    const turn = bench.turnOf(runId)
    await bench.engine.stop(0)
    await bench.other.cancel(runId, 'cli:anna', 'enough')
    await bench.restart()
    expect(bench.agent.turns.get(turn)?.status).toBe('aborted')
  })

  test('a stop does not wait for a step that hangs', async () => {
    const bench = await sopBench([sop('a')])
    const runId = await bench.fire('a')
    await bench.engine.stop(10_000)
    bench.agent.end(bench.turnOf(runId), { status: 'done' })
    await bench.settle()
    expect(await bench.run(runId)).toMatchObject({ status: 'running' })
    expect(bench.host.clock.sleeping).toBe(0)
  })

  test('an engine runs no step before it resumes', async () => {
    const bench = await sopBench([sop('a')])
    await bench.other.fire(event('/a'))
    await bench.settle()
    expect(bench.agent.turns.size).toBe(0)
  })
})

test('ended runs are pruned every hour to the configured number', async () => {
  const bench = await sopBench([sop('a')])
  bench.settings.max_finished_runs = 1
  for (let run = 0; run < 3; run++) {
    bench.agent.end(bench.turnOf(await bench.fire('a')), { status: 'done' })
    await bench.settle()
  }
  const stopping = new AbortController()
  void bench.engine.pruneEveryHour(stopping.signal)
  await bench.settle()
  expect(await bench.store.runs({ limit: 10 })).toHaveLength(1)
  bench.agent.end(bench.turnOf(await bench.fire('a')), { status: 'done' })
  await bench.settle()
  await bench.host.advance(3_600_000)
  expect(await bench.store.runs({ limit: 10 })).toHaveLength(1)
  stopping.abort()
})

test('the key of an event is not forgotten because the clock is a year ahead for a while', async () => {
  const bench = await sopBench([sop('a')])
  const event = { source: 'webhook', topic: '/a', payload: null, atMs: bench.host.clock.nowMs(), by: 'x', key: 'delivery 1' } as const
  const stopping = new AbortController()
  void bench.engine.pruneEveryHour(stopping.signal)
  const [first] = await bench.engine.fire(event)
  bench.host.clock.jump(365 * 24 * 3_600_000)
  await bench.host.advance(3_600_000)
  bench.host.clock.jump(-365 * 24 * 3_600_000)
  expect(await bench.engine.fire(event)).toEqual([first])
  // It is forgotten by the time that passes.
  await bench.host.advance(73 * 3_600_000)
  expect(await bench.engine.fire(event)).not.toEqual([first])
  stopping.abort()
})

describe('a procedure of another agent', () => {
  test('has its steps carried out by this agent, in a session of its own', async () => {
    const bench = await sopBench([sop('a', { agent: 'support' }), sop('b')])
    const [ofSupport, ofMain] = [await bench.fire('a'), await bench.fire('b')]
    expect(bench.agent.live.map(({ session }) => session)).toEqual([`agent:support/sop:${ofSupport}`, `sop:${ofMain}`])
    expect([await bench.engine.get(ofSupport), await bench.engine.get(ofMain)].map((run) => run?.agent)).toEqual(['support', undefined])
  })

  test('has its tool called by this agent in deterministic mode', async () => {
    const steps = [{ tools: ['look'] }]
    const bench = await sopBench([sop('a', { agent: 'support', mode: 'deterministic', steps }), sop('b', { mode: 'deterministic', steps })])
    for (const name of ['a', 'b']) await bench.fire(name)
    await bench.settle()
    expect(bench.agent.calls.map(({ agent }) => agent)).toEqual(['support', 'main'])
  })
})
