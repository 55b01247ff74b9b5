/** Procedures, runs and audit records in the form that the API and the command line show. */

import { isoTime } from '@sluice/kit'
import type { AuditRow, SopRun, SopSummary } from '@sluice/sdk'
import * as v from 'valibot'
import { agentOfRun } from '../run/run-identity.ts'

export const MODES = ['auto', 'supervised', 'step_by_step', 'priority_based', 'deterministic'] as const
export const PRIORITIES = ['low', 'normal', 'high', 'critical'] as const
export const RUN_STATUSES = [
  'waiting',
  'running',
  'waiting_approval',
  'paused_checkpoint',
  'completed',
  'failed',
  'cancelled',
  'expired',
] as const

export const sopSchema = v.object({
  name: v.string(),
  agent: v.pipe(v.string(), v.description('The agent that carries it out')),
  description: v.string(),
  version: v.string(),
  priority: v.picklist(PRIORITIES),
  mode: v.picklist(MODES),
  steps: v.number(),
  triggers: v.pipe(v.array(v.string()), v.description('`webhook:/deploy`, `cron:0 9 * * *`, …')),
  active_runs: v.pipe(v.number(), v.description('Runs that have begun and not ended')),
  waiting_runs: v.pipe(v.number(), v.description('Runs that a limit holds back')),
})

export type ShownSop = v.InferOutput<typeof sopSchema>

export const shownSop = ({ activeRuns, waitingRuns, triggers, ...sop }: SopSummary & { readonly waitingRuns: number }): ShownSop => ({
  ...sop,
  agent: agentOfRun(sop),
  triggers: [...triggers],
  active_runs: activeRuns,
  waiting_runs: waitingRuns,
})

export const runSchema = v.object({
  run_id: v.string(),
  sop: v.string(),
  agent: v.pipe(v.string(), v.description('The agent that carries out the steps')),
  version: v.string(),
  priority: v.picklist(PRIORITIES),
  mode: v.picklist(MODES),
  status: v.picklist(RUN_STATUSES),
  step: v.pipe(v.number(), v.description('The step that is next, runs or waits; from 1')),
  steps: v.array(v.object({ number: v.number(), title: v.string(), kind: v.picklist(['execute', 'checkpoint']) })),
  waits_for: v.nullable(
    v.object({ step_id: v.string(), since: v.string(), why: v.picklist(['mode', 'confirmation', 'checkpoint', 'again']) }),
  ),
  event: v.object({ source: v.string(), topic: v.string(), payload: v.nullable(v.string()), at: v.string(), by: v.string() }),
  results: v.array(
    v.object({
      step: v.number(),
      status: v.picklist(['completed', 'failed', 'skipped']),
      output: v.string(),
      started_at: v.string(),
      ended_at: v.string(),
    }),
  ),
  started_at: v.pipe(v.string(), v.description('When it began; while it waits, and after it expired, the time of its event')),
  ended_at: v.nullable(v.string()),
  reason: v.pipe(
    v.nullable(v.string()),
    v.description('Why it failed, was cancelled or expired; while it waits, the limit that holds it back'),
  ),
})

const time = (ms: number): string => isoTime(ms) ?? ''

export type ShownRun = v.InferOutput<typeof runSchema>

export const shownRun = (run: SopRun): ShownRun => ({
  run_id: run.id,
  sop: run.sop,
  agent: agentOfRun(run),
  version: run.version,
  priority: run.priority,
  mode: run.mode,
  status: run.status,
  step: run.step,
  steps: run.steps.map(({ number, title, kind }) => ({ number, title, kind })),
  waits_for: run.gate && { step_id: run.gate.stepId, since: time(run.gate.sinceMs), why: run.gate.why },
  event: {
    source: run.event.source,
    topic: run.event.topic,
    payload: run.event.payload,
    at: time(run.event.atMs),
    by: run.event.by,
  },
  results: run.results.map(({ step, status, output, startedAtMs, endedAtMs }) => ({
    step,
    status,
    output,
    started_at: time(startedAtMs),
    ended_at: time(endedAtMs),
  })),
  started_at: time(run.startedAtMs),
  ended_at: isoTime(run.endedAtMs),
  reason: run.reason,
})

export const auditSchema = v.object({
  number: v.number(),
  at: v.string(),
  kind: v.string(),
  sop: v.string(),
  run_id: v.nullable(v.string()),
  step: v.nullable(v.number()),
  by: v.string(),
  reason: v.nullable(v.string()),
  detail: v.record(v.string(), v.unknown()),
  previous: v.string(),
  hash: v.string(),
})

export type ShownAudit = v.InferOutput<typeof auditSchema>

export const shownAudit = ({ atMs, run, detail, ...row }: AuditRow): ShownAudit => ({
  ...row,
  at: time(atMs),
  run_id: run,
  detail: { ...detail },
})
