import { SOP_ENDED, type SopRun } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { beginRun } from './begin-run.ts'
import type { Moved } from './gates.ts'
import { ALLOWED, type SopInput, transition } from './machine.ts'
import { event, sop } from './testing/samples.ts'

const NOW_MS = 1_000_000
const begin = (...args: Parameters<typeof sop>): SopRun =>
  beginRun(sop(...args), event('/deploy'), { id: 'run-1', nowMs: NOW_MS, concurrentTotal: 4 }).run

/** The run after all of it; throws for what is refused. */
const after = (run: SopRun, ...inputs: readonly SopInput[]): SopRun => inputs.reduce((at, input) => moved(at, input).run, run)
const moved = (run: SopRun, input: SopInput): Moved => {
  const result = transition(run, input, NOW_MS + 1)
  if ('refused' in result) throw new Error(result.refused)
  return result
}

const started: SopInput = { type: 'attemptStarted', step: 1, turnId: 't1' }
const ended = (step: number, status: 'completed' | 'failed' | 'skipped' = 'completed', turnId: string | null = 't1'): SopInput => ({
  type: 'attemptEnded',
  step,
  turnId,
  status,
  output: `out ${step}`,
})
const approve = (gate: string): SopInput => ({ type: 'approve', gate, by: 'chat:anna', feedback: null })

describe('what a run takes', () => {
  const inputs: readonly SopInput[] = [
    approve('step-1'),
    { type: 'reject', gate: 'step-1', by: 'chat:anna', feedback: null },
    { type: 'expire', gate: 'step-1' },
    started,
    { type: 'report', turnId: 't1', status: 'completed', output: '' },
    ended(1),
    { type: 'retry', turnId: 't1', nextTurnId: 't2', reason: '' },
    { type: 'cut', step: 1, turnId: 't1', reason: '' },
    { type: 'cancel', by: 'cli:anna', reason: 'enough' },
  ]
  const running = begin('a', { steps: [{}, {}] })
  const runs: Readonly<Record<SopRun['status'], SopRun>> = {
    running: after(running, started),
    waiting_approval: begin('a', { mode: 'supervised' }),
    paused_checkpoint: begin('a', { steps: [{ kind: 'checkpoint' }, {}] }),
    completed: after(begin('a'), started, ended(1)),
    failed: after(running, started, ended(1, 'failed')),
    cancelled: after(running, { type: 'cancel', by: 'cli:anna', reason: 'enough' }),
  }

  test.each(Object.entries(runs))('a run that is %s takes what the table says and refuses all else', (status, run) => {
    expect(run.status).toBe(status)
    const taken = inputs.filter((input) => !('refused' in transition(run, input, NOW_MS))).map(({ type }) => type)
    // The attempt that is under way begins no second time.
    expect(taken.toSorted()).toEqual(ALLOWED[run.status].filter((type) => status !== 'running' || type !== 'attemptStarted').toSorted())
  })

  test.each(SOP_ENDED)('a run that is %s takes nothing', (status) => {
    expect(ALLOWED[status]).toEqual([])
  })

  test('a refusal names the run and how it stands', () => {
    expect(transition(runs.completed, approve('step-1'), NOW_MS)).toEqual({ refused: 'The run run-1 cannot be approved: it is completed' })
  })

  test.each<[string, SopInput]>([
    ['another turn', { type: 'report', turnId: 't9', status: 'completed', output: '' }],
    ['the end of another turn', { ...ended(1), turnId: 't9' } as SopInput],
    ['the end of another step', ended(2)],
    ['a second begin', { type: 'attemptStarted', step: 1, turnId: 't2' }],
  ])('%s is refused while a turn is under way', (_what, input) => {
    expect(transition(runs.running, input, NOW_MS)).toHaveProperty('refused')
  })

  test('a decision about another gate is refused', () => {
    expect(transition(runs.waiting_approval, approve('step-2'), NOW_MS)).toHaveProperty('refused')
  })
})

describe('gates', () => {
  test('approving goes on with the same step, and asks no second time', () => {
    const run = after(begin('a', { mode: 'step_by_step' }), approve('step-1'))
    expect(run).toMatchObject({ status: 'running', step: 1, gate: null })
    expect(after(run, started, ended(1)).status).toBe('completed')
  })

  test('a rejection cancels, with who and why', () => {
    const { run, audit } = moved(begin('a', { mode: 'supervised' }), {
      type: 'reject',
      gate: 'step-1',
      by: 'chat:anna',
      feedback: 'not now',
    })
    expect(run).toMatchObject({ status: 'cancelled', reason: 'Rejected by chat:anna: not now', endedAtMs: NOW_MS + 1 })
    expect(audit.map(({ kind, by, reason }) => [kind, by, reason])).toEqual([
      ['rejected', 'chat:anna', 'not now'],
      ['run_cancelled', 'chat:anna', 'Rejected by chat:anna: not now'],
    ])
  })

  test.each(['low', 'normal', 'high', 'critical'] as const)('a time-out never approves: priority %s', (priority) => {
    const waiting = begin('a', { mode: 'step_by_step', priority })
    expect(after(waiting, { type: 'expire', gate: 'step-1' })).toMatchObject({ status: 'cancelled' })
  })

  test('a checkpoint is done once it is approved', () => {
    const run = begin('a', { steps: [{ kind: 'checkpoint' }, {}] })
    expect(after(run, approve('step-1'))).toMatchObject({
      status: 'running',
      step: 2,
      results: [{ step: 1, output: 'Approved by chat:anna' }],
    })
  })

  test('what was cut waits under a name of its own each time', () => {
    const cut: SopInput = { type: 'cut', step: 1, turnId: null, reason: 'cut off' }
    const begun: SopInput = { type: 'attemptStarted', step: 1, turnId: null }
    const once = after(begin('a', { mode: 'deterministic' }), begun, cut)
    expect(once).toMatchObject({ status: 'waiting_approval', attempt: null, gate: { stepId: 'step-1-again-1', why: 'again' } })
    expect(after(once, approve('step-1-again-1'), begun, cut).gate?.stepId).toBe('step-1-again-2')
  })
})

describe('ends', () => {
  test('a failed step fails the run, with its number and output', () => {
    expect(after(begin('a', { steps: [{}, {}] }), started, ended(1, 'failed'))).toMatchObject({
      status: 'failed',
      reason: 'Step 1 failed: out 1',
    })
  })

  test('completed is impossible without a step that was carried out', () => {
    const skipped = after(begin('a'), started, ended(1, 'skipped'))
    const paused = after(begin('a', { steps: [{ kind: 'checkpoint' }] }), approve('step-1'))
    for (const run of [skipped, paused]) expect(run).toMatchObject({ status: 'failed', reason: 'No step was carried out' })
  })

  test('one carried out among skipped ones is enough', () => {
    const run = after(begin('a', { steps: [{}, {}] }), started, ended(1, 'skipped'))
    expect(after(run, { ...started, step: 2 }, ended(2)).status).toBe('completed')
  })

  test('a call that was not kept as begun is recorded as begun with its end', () => {
    const { audit } = moved(begin('a', { mode: 'deterministic' }), { ...ended(1, 'completed', null), startedAtMs: NOW_MS - 5 } as SopInput)
    expect(audit.map(({ kind, atMs }) => [kind, atMs - NOW_MS])).toEqual([
      ['step_started', -5],
      ['step_completed', 1],
      ['run_completed', 1],
    ])
  })
})

test('the run start is the first record, with who and what', () => {
  const { audit } = beginRun(sop('a'), event('/deploy'), { id: 'run-1', nowMs: NOW_MS, concurrentTotal: 4 })
  expect(audit[0]).toMatchObject({ kind: 'run_started', run: 'run-1', by: 'device:1', reason: 'webhook /deploy' })
})

test('a record holds no more of an output than fits a log', () => {
  const { audit } = moved(after(begin('a'), started), { ...ended(1), output: 'x'.repeat(10_000) } as SopInput)
  expect(audit[0]?.reason?.length).toBeLessThanOrEqual(500)
})
