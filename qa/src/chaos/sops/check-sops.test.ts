import type { Approval, AuditRow, NewAudit, OutboxRow, SopRun } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { checkSops } from './check-sops.ts'
import type { Seen, SopsHistory, SopsView } from './history.ts'

const MARK = 'ev-000001'
const step = (number: number, kind: 'execute' | 'checkpoint' = 'execute'): SopRun['steps'][number] => ({
  number,
  title: 'Do it',
  body: '',
  tools: kind === 'execute' ? ['http_request'] : null,
  requiresConfirmation: false,
  kind,
  input: null,
  output: null,
})
const run = (members: Partial<SopRun> = {}): SopRun => ({
  id: 'run-1',
  sop: 'gated',
  version: '1',
  description: '',
  priority: 'normal',
  mode: 'deterministic',
  steps: [step(1), step(2, 'checkpoint'), step(3)],
  event: { source: 'webhook', topic: '/pipe', payload: JSON.stringify({ mark: MARK, gated: true }), atMs: 1000, by: 'local' },
  status: 'completed',
  step: 3,
  gate: null,
  gates: 1,
  attempt: null,
  report: null,
  results: [1, 2, 3].map((number) => ({ step: number, status: 'completed', output: 'ok', startedAtMs: 1000, endedAtMs: 1000 })),
  startedAtMs: 1000,
  endedAtMs: 3000,
  reason: null,
  ...members,
})
const row = (kind: NewAudit['kind'], number: number | null = null, members: Partial<NewAudit> = {}): AuditRow => ({
  kind,
  atMs: 1000,
  sop: 'gated',
  run: 'run-1',
  step: number,
  by: 'engine',
  reason: null,
  detail: {},
  number: 0,
  previous: '',
  hash: '',
  ...members,
})
const AUDIT: readonly AuditRow[] = [
  row('run_started'),
  ...[row('step_started', 1), row('step_completed', 1)],
  row('approval_requested', 2, { detail: { gate: 'step-2' } }),
  row('approved', 2, { by: 'device:local', detail: { gate: 'step-2' } }),
  row('step_completed', 2),
  ...[row('step_started', 3), row('step_completed', 3)],
  row('run_completed'),
]
const approval = (members: Partial<Approval> = {}): Approval => ({
  runId: 'run-1',
  stepId: 'step-2',
  gate: 'sop',
  callHash: null,
  owner: null,
  person: null,
  decider: 'starter',
  standing: null,
  sources: [],
  workflow: 'gated',
  title: '',
  message: '',
  approveKeywords: [],
  rejectKeywords: [],
  createdAtMs: 1500,
  expiresAtMs: 1800,
  token: 't',
  state: 'approved',
  by: 'device:local',
  byStanding: 'operator',
  feedback: 'by-1',
  decidedAtMs: 1600,
  acknowledgedAtMs: 1700,
  prompts: [{ number: 1, channel: 'telegram', account: '7', to: { to: 'g' }, providerId: 'g:1', sentAtMs: null }],
  ...members,
})
const message = (text: string, state: OutboxRow['state'] = 'sent'): OutboxRow => ({
  number: 2,
  channel: 'telegram',
  account: '7',
  to: { to: 'g' },
  text,
  part: 1,
  parts: 1,
  state,
  attempts: 1,
  createdAtMs: 0,
  nextAtMs: null,
  endedAtMs: 0,
  providerId: null,
  repeated: false,
  error: null,
  clientId: '',
  inbox: null,
  turnId: null,
})
const CONFIRMATION = 'Approved by device:local: by-1'

const deciding = (tag: string, members: Partial<Extract<Seen, { type: 'deciding' }>> = {}): Seen => ({
  type: 'deciding',
  tag,
  run: 'run-1',
  step: 'step-2',
  means: 'http',
  approve: true,
  by: 'device:',
  isEntitled: true,
  ...members,
})
const effect = (number: number, members: Partial<Extract<Seen, { type: 'effect' }>> = {}): Seen => ({
  type: 'effect',
  sop: 'gated',
  step: number,
  mark: MARK,
  ...members,
})
const accepted: Seen = { type: 'accepted', mark: MARK, results: [{ sop: 'gated', status: 'started', runId: 'run-1' }] }
const emitted = (state = 'approved'): Seen => ({ type: 'emitted', run: 'run-1', step: 'step-2', state })
const ended = (members: Partial<Extract<Seen, { type: 'ended' }>> = {}): Seen => ({
  type: 'ended',
  by: 'SIGTERM',
  code: 0,
  wallMs: 9000,
  ...members,
})
const LAST: readonly Seen[] = [{ type: 'ending', wallMs: 8990 }, ended(), { type: 'followed', fromMs: 950, untilMs: 8900 }]
const SEEN: readonly Seen[] = [
  { type: 'started', wallMs: 900 },
  ...[accepted, effect(1), deciding('by-1'), { type: 'won', tag: 'by-1' } as const, emitted(), effect(3)],
  ...LAST,
]
const without = (dropped: Seen): Seen[] => SEEN.filter((event) => JSON.stringify(event) !== JSON.stringify(dropped))
/** The events, with more before the end. */
const and = (...more: Seen[]): Seen[] => [...SEEN.slice(0, -LAST.length), ...more, ...LAST]

const broken = (history: Partial<SopsHistory>, view: Partial<SopsView> = {}): string[] => {
  const events = [{ mark: MARK, path: '/pipe', sops: ['gated'] }]
  const found = checkSops(
    { events, seen: SEEN, delivered: [CONFIRMATION], ...history },
    { problems: [], runs: [run()], audit: AUDIT, approvals: [approval()], outbox: [message(CONFIRMATION)], lines: [], ...view },
  )
  return [...new Set(found.map(({ rule }) => rule))]
}
const beat = (id: string, atMs: number, missed: number): SopRun => {
  const payload = JSON.stringify({ scheduled_at: new Date(atMs).toISOString(), missed })
  return run({ id, sop: 'beat', steps: [step(1)], step: 1, results: [], event: { ...run().event, source: 'cron', topic: '*', payload } })
}

test('a correct history breaks no rule', () => expect(broken({})).toEqual([]))

describe('checkSops finds that', () =>
  test.each<[problem: string, rule: string, history: Partial<SopsHistory>, view?: Partial<SopsView>]>([
    ['an event is accepted twice', 'answered once', { seen: and(accepted) }],
    ['an event is refused', 'accepted', { seen: and({ type: 'refused', mark: MARK, status: 500 }) }],
    ['an event starts fewer procedures than it matches', 'answered', { seen: [...without(accepted), { ...accepted, results: [] }] }],
    ['an accepted event has no effect', 'dispatched', {}, { runs: [], audit: [], approvals: [], outbox: [] }],
    ['an announced run is missing', 'lost', {}, { runs: [] }],
    ['an announced run by hand is missing', 'lost', { seen: and({ type: 'begun', run: 'run-9' }) }],
    ['a run is not stored after a kill', 'durable', { seen: and({ type: 'inspected', runs: [], problems: [] }) }],
    ['an event starts a procedure twice', 'started once', {}, { runs: [run(), run({ id: 'run-2' })] }],
    [
      'an event is skipped',
      'skipped',
      {},
      { audit: [...AUDIT, row('trigger_skipped', null, { run: null, detail: { source: 'webhook', topic: '/pipe' } })] },
    ],
    [
      'more runs are active than the procedure allows',
      'limit',
      {},
      { audit: [1, 2, 3].map((run) => row('run_started', null, { sop: 'hooked', run: `run-${run}` })) },
    ],
    [
      'a waiting run is missing',
      'lost',
      { seen: and({ ...accepted, results: [{ sop: 'gated', status: 'waiting', runId: 'run-9', reason: '' }] } as Seen) },
    ],
    ['a step has its effect twice', 'effect once', { seen: and(effect(1)) }],
    ['an effect has no run', 'lost', { seen: and(effect(1, { mark: 'ev-9' })) }],
    ['an effect has no record', 'recorded', {}, { audit: AUDIT.filter(({ kind, step: at }) => kind !== 'step_started' || at !== 1) }],
    ['a step is completed without its effect', 'carried out', { seen: without(effect(3)) }],
    [
      'a command runs without approval',
      'allowed',
      {},
      { runs: [run({ sop: 'guarded' })], lines: [{ sop: 'guarded', step: 2, mark: MARK }] },
    ],
    ['a run never ends', 'ended', {}, { runs: [run({ status: 'running' })] }],
    ['a run is completed with a step missing', 'audit', {}, { audit: AUDIT.filter(({ step: at }) => at !== 3) }],
    ['a step starts without its approval', 'audit', {}, { audit: AUDIT.filter(({ kind }) => kind !== 'approved') }],
    ['the chain of the log is broken', 'file', {}, { problems: ['audit record 3: its hash does not fit'] }],
    ['an instant starts two runs', 'clock', {}, { runs: [run(), beat('b1', 4000, 0), beat('b2', 4000, 0)] }],
    ['an instant is missed and not counted', 'clock', {}, { runs: [run(), beat('b1', 4000, 0), beat('b2', 10_000, 1)] }],
    ['SIGTERM takes too long', 'stop', { seen: [...SEEN, ended({ wallMs: 18_991 })] }],
    ['SIGTERM ends with another exit code than 0', 'stop', { seen: [...SEEN, ended({ code: 13 })] }],
    [
      'two people are answered that they decided',
      'decided once',
      { seen: and(deciding('by-2', { approve: false }), { type: 'won', tag: 'by-2' }) },
    ],
    [
      'a person is answered another decision',
      'decided once',
      { seen: and(deciding('by-2'), { type: 'lost', tag: 'by-2', state: 'expired' }) },
    ],
    [
      'an approval is pending at the end',
      'decided',
      {},
      { approvals: [approval({ state: 'pending', decidedAtMs: null, by: null, acknowledgedAtMs: null })] },
    ],
    ['a decision is never acknowledged', 'acknowledged', {}, { approvals: [approval({ acknowledgedAtMs: null })] }],
    ['the audit log has a decision twice', 'recorded once', {}, { audit: [...AUDIT, ...AUDIT.filter(({ kind }) => kind === 'approved')] }],
    ['the audit log has another decision', 'recorded', {}, { approvals: [approval({ state: 'rejected', by: 'device:local' })] }],
    ['a time-out approves', 'by people', {}, { approvals: [approval({ by: 'timeout', feedback: null })] }],
    [
      'a person decides who is not entitled',
      'by people',
      { seen: and(deciding('by-1', { isEntitled: false })).filter((event) => event.type !== 'deciding' || !event.isEntitled) },
    ],
    [
      'an approval expires early',
      'expired',
      {},
      { approvals: [approval({ state: 'expired', by: 'timeout', expiresAtMs: 2000, feedback: null })] },
    ],
    ['an opened approval is missing', 'kept', { seen: and({ type: 'opened', run: 'ext-1', step: 'deploy' }) }],
    ['a decision is confirmed twice', 'confirmed once', { delivered: [CONFIRMATION, CONFIRMATION] }],
    ['a decision is not confirmed', 'confirmed once', {}, { outbox: [] }],
    ['a message is a dead letter', 'sent', {}, { outbox: [message(CONFIRMATION), message('?', 'dead')] }],
    ['the event of a decision is missing', 'event', { seen: without(emitted()) }],
    ['the event of a decision arrives twice', 'event', { seen: and(emitted()) }],
    ['the event says another decision', 'event', { seen: [emitted('expired'), ...without(emitted())] }],
    ['a request is unexpected', 'unexpected', { seen: and({ type: 'unexpected', detail: 'an effect at /' }) }],
  ])('%s', (_problem, rule, history, view) => {
    expect(broken(history, view)).toContain(rule)
  }))

test('a repeat that a person agreed to breaks no rule', () => {
  const interrupted = [
    row('step_started', 1),
    row('step_cut', 1),
    row('approval_requested', 1, { detail: { gate: 'step-1-again-1' } }),
    row('approved', 1, { by: 'device:local', detail: { gate: 'step-1-again-1' } }),
  ]
  const again = approval({ stepId: 'step-1-again-1', feedback: 'by-2', prompts: [] })
  const seen = and(effect(1), deciding('by-2', { step: 'step-1-again-1' }), {
    type: 'emitted',
    run: 'run-1',
    step: 'step-1-again-1',
    state: 'approved',
  })
  expect(broken({ seen }, { audit: [...AUDIT.slice(0, 1), ...interrupted, ...AUDIT.slice(1)], approvals: [approval(), again] })).toEqual([])
})

test('the event of a decision right before the last event may be missing', () => {
  const seen = SEEN.filter(({ type }) => type !== 'emitted' && type !== 'followed')
  expect(broken({ seen: [...seen, { type: 'followed', fromMs: 950, untilMs: 1900 }] })).toEqual([])
})
