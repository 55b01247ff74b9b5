/** What subscribers are told of a run (§6): derived from what was recorded, so that the two never differ. */
import type { AuditKind, Events, NewAudit, SopRun, SopStepResult } from '@sluice/sdk'

const STEP_STATUS: Partial<Readonly<Record<AuditKind, 'started' | SopStepResult['status']>>> = {
  step_started: 'started',
  step_completed: 'completed',
  step_failed: 'failed',
  step_skipped: 'skipped',
}

/** `before`: undefined for a run that was just started. */
export function tellMoved(events: Events, before: SopRun | undefined, after: SopRun, audit: readonly NewAudit[]): void {
  const { id: run_id, sop, status, steps, reason } = after
  for (const { kind, step } of audit) {
    const stepStatus = STEP_STATUS[kind]
    if (stepStatus && step !== null) events.emit({ type: 'sop_step', run_id, sop, step, status: stepStatus })
  }
  if (before?.status === status) return
  events.emit({ type: 'sop_run', run_id, sop, status, step: after.step, steps: steps.length, reason })
}
