/** Reports the progress of a run to subscribers and observers. It is derived from the audit records, so the two never differ. */
import { type AuditKind, type NewAudit, ownerOfRun, type SopRun, type SopStepResult } from '@sluice/sdk'
import type { RunPorts } from './engine-ports.ts'
import { runTrace, stepTrace } from './run-identity.ts'

const STEP_STATUS: Partial<Readonly<Record<AuditKind, 'started' | SopStepResult['status']>>> = {
  step_started: 'started',
  step_completed: 'completed',
  step_failed: 'failed',
  step_skipped: 'skipped',
}

/** `before` is undefined for a run that has just been stored. */
export function reportProgress(
  { events, observe, changed }: RunPorts,
  before: SopRun | undefined,
  after: SopRun,
  audit: readonly NewAudit[],
): void {
  const { id: run_id, sop, status, steps, reason } = after
  const owner = ownerOfRun(after)
  for (const { kind, step } of audit) {
    const stepStatus = STEP_STATUS[kind]
    if (stepStatus && step !== null) events.emit({ type: 'sop_step', run_id, sop, step, status: stepStatus }, owner)
  }
  for (const { step, status: outcome, startedAtMs, endedAtMs } of after.results.slice(before?.results.length ?? 0)) {
    const span = { trace: stepTrace(after, step), startMs: startedAtMs, tookMs: endedAtMs - startedAtMs }
    observe({ kind: 'sop_step', sop, step, outcome, span })
  }
  if (before?.status === status) return
  changed()
  events.emit({ type: 'sop_run', run_id, sop, status, step: after.step, steps: steps.length, reason }, owner)
  if (status === 'waiting' || status === 'expired') observe({ kind: 'sop_run', sop, outcome: status })
  if (status === 'completed' || status === 'failed' || status === 'cancelled') {
    const { startedAtMs: startMs, endedAtMs } = after
    const span = { trace: runTrace(after), startMs, tookMs: (endedAtMs ?? startMs) - startMs }
    observe({ kind: 'sop_run', sop, outcome: status, span })
  }
}
