import { SOP_ENDED, type SopRun } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { event, sop } from '../testing/samples.ts'
import { beginRun } from './begin-run.ts'
import type { Transition } from './gates.ts'
import { ALLOWED, type SopInput, transition } from './machine.ts'

const NOW_MS = 1_000_000
const begin = (...args: Parameters<typeof sop>): SopRun =>
  beginRun(sop(...args), event('/deploy'), { id: 'run-1', nowMs: NOW_MS, concurrentTotal: 4 }).run

const held = (...args: Parameters<typeof sop>): SopRun =>
  beginRun(sop(...args), event('/deploy'), { id: 'run-1', nowMs: NOW_MS, concurrentTotal: 0 }).held('too many runs').run

/** Returns the run after the inputs; throws for a refused one. */
const after = (run: SopRun, ...inputs: readonly SopInput[]): SopRun => inputs.reduce((at, input) => moved(at, input).run, run)
const moved = (run: SopRun, input: SopInput): Transition => {
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

describe('a run', () => {
  const inputs: readonly SopInput[] = [
    { type: 'begin' },
    { type: 'tooOld', hours: 24 },
    approve('step-1'),
    { type: 'reject', gate: 'step-1', by: 'chat:anna', feedback: null },
    { type: 'expire', gate: 'step-1' },
    started,
    { type: 'report', turnId: 't1', status: 'completed', output: '' },
    ended(1),
    { type: 'retry', turnId: 't1', nextTurnId: 't2', reason: '' },
    { type: 'interrupted', step: 1, turnId: 't1', reason: '' },
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
    waiting: held('a'),
    expired: after(held('a'), { type: 'tooOld', hours: 24 }),
  }

  test.each(Object.entries(runs))('that is %s takes only the inputs of the table', (status, run) => {
    expect(run.status).toBe(status)
    const taken = inputs.filter((input) => !('refused' in transition(run, input, NOW_MS))).map(({ type }) => type)
    // An attempt is in progress, so another one cannot begin.
    expect(taken.toSorted()).toEqual(ALLOWED[run.status].filter((type) => status !== 'running' || type !== 'attemptStarted').toSorted())
  })

  test.each(SOP_ENDED)('that is %s takes no input', (status) => {
    expect(ALLOWED[status]).toEqual([])
  })

  test('is named with its status in a refusal', () => {
    expect(transition(runs.completed, approve('step-1'), NOW_MS)).toEqual({ refused: 'The run run-1 cannot be approved: it is completed' })
  })

  test.each<[string, SopInput]>([
    ['the report of another turn', { type: 'report', turnId: 't9', status: 'completed', output: '' }],
    ['the end of another turn', { ...ended(1), turnId: 't9' } as SopInput],
    ['the end of another step', ended(2)],
    ['a second start', { type: 'attemptStarted', step: 1, turnId: 't2' }],
  ])('refuses %s while a turn is in progress', (_name, input) => {
    expect(transition(runs.running, input, NOW_MS)).toHaveProperty('refused')
  })

  test('refuses a decision about another gate', () => {
    expect(transition(runs.waiting_approval, approve('step-2'), NOW_MS)).toHaveProperty('refused')
  })
})

describe('a run that a limit holds back', () => {
  test('says what holds it back, and begins like any other run', () => {
    const waiting = held('a', { mode: 'supervised' })
    expect(waiting).toMatchObject({ status: 'waiting', reason: 'too many runs', gate: null })
    const { run, audit } = moved(waiting, { type: 'begin' })
    const begun = begin('a', { mode: 'supervised' })
    expect(run).toEqual({ ...begun, startedAtMs: NOW_MS + 1, gate: { ...begun.gate, sinceMs: NOW_MS + 1 } })
    expect(audit.map(({ kind, by }) => [kind, by])).toEqual([
      ['run_started', 'device:1'],
      ['approval_requested', 'engine'],
    ])
  })

  test('expires with the limit as its reason', () => {
    expect(moved(held('a'), { type: 'tooOld', hours: 24 })).toMatchObject({
      run: { status: 'expired', reason: 'It waited 24 h for a free slot: too many runs', endedAtMs: NOW_MS + 1 },
      audit: [{ kind: 'run_expired', by: 'engine' }],
    })
  })
})

describe('gates', () => {
  test('an approval continues with the same step without asking again', () => {
    const run = after(begin('a', { mode: 'step_by_step' }), approve('step-1'))
    expect(run).toMatchObject({ status: 'running', step: 1, gate: null })
    expect(after(run, started, ended(1)).status).toBe('completed')
  })

  test('a rejection cancels the run and records its actor and reason', () => {
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

  test.each(['low', 'normal', 'high', 'critical'] as const)('a timeout never approves: priority %s', (priority) => {
    const waiting = begin('a', { mode: 'step_by_step', priority })
    expect(after(waiting, { type: 'expire', gate: 'step-1' })).toMatchObject({ status: 'cancelled' })
  })

  test('an approved checkpoint is completed', () => {
    const run = begin('a', { steps: [{ kind: 'checkpoint' }, {}] })
    expect(after(run, approve('step-1'))).toMatchObject({
      status: 'running',
      step: 2,
      results: [{ step: 1, output: 'Approved by chat:anna' }],
    })
  })

  test('each interruption waits at a gate of its own', () => {
    const interrupted: SopInput = { type: 'interrupted', step: 1, turnId: null, reason: 'crashed' }
    const begun: SopInput = { type: 'attemptStarted', step: 1, turnId: null }
    const once = after(begin('a', { mode: 'deterministic' }), begun, interrupted)
    expect(once).toMatchObject({ status: 'waiting_approval', attempt: null, gate: { stepId: 'step-1-again-1', why: 'again' } })
    expect(after(once, approve('step-1-again-1'), begun, interrupted).gate?.stepId).toBe('step-1-again-2')
  })
})

describe('the end of a run', () => {
  test('names the number and output of a failed step', () => {
    expect(after(begin('a', { steps: [{}, {}] }), started, ended(1, 'failed'))).toMatchObject({
      status: 'failed',
      reason: 'Step 1 failed: out 1',
    })
  })

  test('is a failure when no step was carried out', () => {
    const skipped = after(begin('a'), started, ended(1, 'skipped'))
    const paused = after(begin('a', { steps: [{ kind: 'checkpoint' }] }), approve('step-1'))
    for (const run of [skipped, paused]) expect(run).toMatchObject({ status: 'failed', reason: 'No step was carried out' })
  })

  test('is a success when one step was carried out and others were skipped', () => {
    const run = after(begin('a', { steps: [{}, {}] }), started, ended(1, 'skipped'))
    expect(after(run, { ...started, step: 2 }, ended(2)).status).toBe('completed')
  })

  test('records the start of a read-only call together with its end', () => {
    const { audit } = moved(begin('a', { mode: 'deterministic' }), { ...ended(1, 'completed', null), startedAtMs: NOW_MS - 5 } as SopInput)
    expect(audit.map(({ kind, atMs }) => [kind, atMs - NOW_MS])).toEqual([
      ['step_started', -5],
      ['step_completed', 1],
      ['run_completed', 1],
    ])
  })
})

test('the first record is the start of the run, with its actor and event', () => {
  const { audit } = beginRun(sop('a'), event('/deploy'), { id: 'run-1', nowMs: NOW_MS, concurrentTotal: 4 })
  expect(audit[0]).toMatchObject({ kind: 'run_started', run: 'run-1', by: 'device:1', reason: 'webhook /deploy' })
})

test('a record cuts a long output', () => {
  const { audit } = moved(after(begin('a'), started), { ...ended(1), output: 'x'.repeat(10_000) } as SopInput)
  expect(audit[0]?.reason?.length).toBeLessThanOrEqual(500)
})
