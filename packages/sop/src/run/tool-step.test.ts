import { ALL_SHARDS, AppError } from '@sluice/sdk'
import { describe, expect, test, vi } from 'vitest'
import { sopBench } from '../testing/bench.ts'
import { event, sop } from '../testing/samples.ts'

const MODE = 'deterministic'

async function toolBench(steps: NonNullable<Parameters<typeof sop>[1]>['steps'], outputs: Readonly<Record<string, string>> = {}) {
  const bench = await sopBench([sop('a', { mode: MODE, steps: steps ?? [] })])
  for (const [name, output] of Object.entries(outputs)) bench.agent.tools.set(name, { risk: 'read', run: async () => output })
  return bench
}

test('pipes outputs to the next step as JSON, without a model', async () => {
  const bench = await toolBench(
    [
      { tools: ['find'], input: { path: '$.path' } },
      { tools: ['store'], input: { all: '$', first: '$.rows.0' } },
    ],
    {
      find: '{"rows":["x","y"]}',
      store: 'kept',
    },
  )
  await bench.engine.fire(event('/a', { payload: '{"path":"/tmp"}' }))
  await bench.settle()
  expect(bench.agent.calls.map(({ tool, input }) => [tool, input])).toEqual([
    ['find', { path: '/tmp' }],
    ['store', { all: { rows: ['x', 'y'] }, first: 'x' }],
  ])
  const [run] = await bench.store.runs({ limit: 1 })
  expect(run).toMatchObject({ status: 'completed', results: [{ value: { rows: ['x', 'y'] } }, { output: 'kept', value: 'kept' }] })
  expect(bench.agent.turns.size).toBe(0)
})

test('a checkpoint pauses and passes on the earlier output', async () => {
  const bench = await toolBench([{ tools: ['find'] }, { kind: 'checkpoint' }, { tools: ['store'] }], { find: '{"n":1}', store: 'kept' })
  const runId = await bench.fire('a')
  expect(await bench.run(runId)).toMatchObject({ status: 'paused_checkpoint', step: 2 })
  await bench.restart()
  await bench.decide(runId, 'approved')
  expect(await bench.run(runId)).toMatchObject({ status: 'completed' })
  expect(bench.agent.calls.map(({ tool, input }) => [tool, input])).toEqual([['store', { n: 1 }]])
})

/** A schema in which each level refers to the next one twice. */
function doublings(levels: number): object {
  const next = (level: number) => ({ $ref: `#/$defs/${level + 1}` })
  const defs = Array.from({ length: levels }, (_, level): [string, object] => [String(level), { allOf: [next(level), next(level)] }])
  return { $ref: '#/$defs/0', $defs: Object.fromEntries([...defs, [String(levels), {}]]) }
}

describe('a step fails because of', () => {
  test.each([
    ['a tool that throws', { tools: ['refuse'] }, 'No such file'],
    ['an unknown tool', { tools: ['nothing'] }, 'There is no tool "nothing".'],
    ['a reference to a missing value', { tools: ['find'], input: { a: '$.b' } }, '$.b'],
    ['an output that does not fit its schema', { tools: ['find'], output: { type: 'object', required: ['m'] } }, 'does not fit its schema'],
    ['a schema with an exponential pattern', { tools: ['as'], output: { pattern: '^(a+)+$' } }, 'took longer than'],
    ['a schema with exponentially many references', { tools: ['find'], output: doublings(40) }, 'took longer than'],
    ['a schema that cannot be used', { tools: ['find'], output: { type: 'object', properties: { n: { $ref: '#/nowhere' } } } }, 'schema'],
  ])('%s', async (_what, step, reason) => {
    const bench = await toolBench([step], { find: '{"n":1}', as: `${'a'.repeat(40)}!` })
    bench.agent.tools.set('refuse', { risk: 'read', run: () => Promise.reject(new AppError('not_found', 'No such file')) })
    const runId = await bench.fire('a')
    // The validator is imported at its first use.
    await vi.waitUntil(async () => (await bench.run(runId)).status !== 'running')
    expect(await bench.run(runId)).toMatchObject({ status: 'failed', reason: expect.stringContaining(reason) })
  })
})

test('pipes the data of a tool report instead of its text', async () => {
  const bench = await toolBench([{ tools: ['find'] }, { tools: ['store'], input: { n: '$.n' } }], { store: 'kept' })
  bench.agent.tools.set('find', {
    risk: 'read',
    async run(_input, { report }) {
      report?.({ data: '{"n":1}' })
      return '{"n":1}\n[exit code 0]'
    },
  })
  const runId = await bench.fire('a')
  expect(bench.agent.calls.at(-1)).toMatchObject({ tool: 'store', input: { n: 1 } })
  expect(await bench.run(runId)).toMatchObject({
    status: 'completed',
    results: [{ output: '{"n":1}\n[exit code 0]', value: { n: 1 } }, {}],
  })
})

test('a tool that reports a failure fails its step and ends the run', async () => {
  const bench = await toolBench([{ tools: ['check'] }, { tools: ['ship'] }], { ship: 'shipped' })
  bench.agent.tools.set('check', {
    risk: 'execute',
    async run(_input, { report }) {
      report?.({ failed: true, data: '' })
      return '[exit code 1]'
    },
  })
  const runId = await bench.fire('a')
  expect(await bench.run(runId)).toMatchObject({ status: 'failed', reason: 'Step 1 failed: [exit code 1]' })
  expect(bench.agent.calls.map(({ tool }) => tool)).toEqual(['check'])
})

test('pipes an overly nested result as text', async () => {
  const nested = '['.repeat(20_000) + ']'.repeat(20_000)
  const bench = await toolBench([{ tools: ['find'] }, { tools: ['store'], input: { text: '$' } }], { find: nested, store: 'kept' })
  const runId = await bench.fire('a')
  expect(await bench.run(runId)).toMatchObject({ status: 'completed' })
  expect(bench.agent.calls.at(-1)).toMatchObject({ input: { text: nested } })
})

describe('a call with side effects', () => {
  const acting = async () => {
    const bench = await toolBench([{ tools: ['act'] }])
    const effects: string[] = []
    const release = Promise.withResolvers<void>()
    bench.agent.tools.set('act', {
      risk: 'execute',
      async run(_input, { callId }) {
        effects.push(callId)
        await release.promise
        return 'acted'
      },
    })
    return { bench, effects, release }
  }

  test('is stored as begun before the tool runs', async () => {
    const { bench } = await acting()
    const runId = await bench.fire('a')
    expect(await bench.run(runId)).toMatchObject({ attempt: { turnId: null, number: 1 } })
    expect(await bench.kinds(runId)).toEqual(['run_started', 'step_started'])
  })

  test('runs again after a crash only if a person approves', async () => {
    const { bench, effects, release } = await acting()
    const runId = await bench.fire('a')
    await bench.restart()
    expect(await bench.run(runId)).toMatchObject({ status: 'waiting_approval', gate: { stepId: 'step-1-again-1', why: 'again' } })
    expect(bench.approvals.all()[0]?.message).toContain('may have taken effect')
    expect(effects).toHaveLength(1)
    release.resolve()
    await bench.decide(runId, 'approved')
    expect(effects).toHaveLength(2)
    expect(new Set(effects).size).toBe(2)
    expect(await bench.run(runId)).toMatchObject({ status: 'completed' })
  })

  test('that ends while the engine stops is stored', async () => {
    const { bench, release } = await acting()
    const runId = await bench.fire('a')
    const stopped = bench.engine.stop(10_000)
    release.resolve()
    await stopped
    expect(await bench.run(runId)).toMatchObject({ status: 'completed' })
  })

  test('that waits for a person does not delay a stop and has not begun', async () => {
    const bench = await toolBench([{ tools: ['ask'] }])
    bench.agent.tools.set('ask', { risk: 'execute', asks: true, run: async () => 'acted' })
    const runId = await bench.fire('a')
    const stopped = bench.engine.stop(10_000).then(() => 'stopped')
    await bench.settle()
    expect(await Promise.race([stopped, 'waiting'])).toBe('stopped')
    expect(await bench.run(runId)).toMatchObject({ status: 'running', attempt: null })
  })

  test('is aborted when its run is cancelled', async () => {
    const bench = await toolBench([{ tools: ['act'] }])
    let isAborted = false
    bench.agent.tools.set('act', {
      risk: 'execute',
      run: (_input, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => {
            isAborted = true
            reject(signal.reason)
          }),
        ),
    })
    const runId = await bench.fire('a')
    await bench.engine.cancel(runId, 'cli:anna', 'enough')
    await bench.settle()
    expect(isAborted).toBe(true)
    expect(await bench.run(runId)).toMatchObject({ status: 'cancelled' })
    expect(bench.engine.list()[0]?.activeRuns).toBe(0)
  })

  test('does not run when the lease is lost while its start is stored', async () => {
    const { bench, effects } = await acting()
    const lost = new AbortController()
    const mayAct = () => !lost.signal.aborted
    const lease = { name: 'shards/0-255', epoch: 1, shards: ALL_SHARDS, lost: lost.signal, mayAct, release: async () => undefined } as const
    const { advance } = bench.store
    const engine = bench.newProcess()
    await engine.resume({
      lease,
      sops: {
        ...bench.store,
        advance: (before, after, audit) => {
          lost.abort()
          return advance(before, after, audit)
        },
      },
    })
    await engine.fire(event('/a'))
    await bench.settle()
    expect(effects).toEqual([])
    const [run] = await bench.store.runs({ limit: 1 })
    expect(run).toMatchObject({ status: 'running', attempt: { turnId: null } })
  })

  test('runs only when its start is stored, and its result survives an outage', async () => {
    const { bench, effects, release } = await acting()
    const { advance } = bench.store
    const fail = () => Promise.reject(new AppError('unavailable', 'the disk is full'))
    bench.store.advance = fail
    const runId = await bench.fire('a')
    expect(effects).toEqual([])
    bench.store.advance = advance
    await bench.host.advance(1000)
    expect(effects).toHaveLength(1)
    bench.store.advance = fail
    release.resolve()
    await bench.host.advance(5000)
    bench.store.advance = advance
    await bench.host.advance(30_000)
    expect(await bench.run(runId)).toMatchObject({ status: 'completed' })
    expect(effects).toHaveLength(1)
  })
})
