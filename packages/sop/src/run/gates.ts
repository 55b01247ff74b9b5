/** Gates: which steps wait for a person before they run, and how a run arrives at a step. Execution modes differ only here. */
import type { NewAudit, SopGate, SopMode, SopPriority, SopRun, SopStep } from '@sluice/sdk'
import { stepRecord } from './audit-record.ts'

/** A changed run with the audit records of the change. */
export interface Transition {
  readonly run: SopRun
  readonly audit: readonly NewAudit[]
}

/** Returns the first of checkpoint, confirmation and mode that makes a run wait before this step; null when it goes on. */
export function gateBefore(
  mode: SopMode,
  priority: SopPriority,
  step: Pick<SopStep, 'number' | 'kind' | 'requiresConfirmation'>,
): Exclude<SopGate['why'], 'again'> | null {
  if (step.kind === 'checkpoint') return 'checkpoint'
  if (mode === 'deterministic') return null
  if (step.requiresConfirmation) return 'confirmation'
  return isGatedByMode(mode, priority, step.number === 1) ? 'mode' : null
}

function isGatedByMode(mode: Exclude<SopMode, 'deterministic'>, priority: SopPriority, isFirstStep: boolean): boolean {
  switch (mode) {
    case 'auto':
      return false
    case 'supervised':
      return isFirstStep
    case 'step_by_step':
      return true
    case 'priority_based':
      return isFirstStep && priority !== 'high' && priority !== 'critical'
  }
}

/** Returns the run at step `number`: running, or waiting at a gate. */
export function arriveAt(run: SopRun, number: number, nowMs: number): Transition {
  const arrived: SopRun = { ...run, status: 'running', step: number, gate: null, attempt: null, report: null }
  const step = run.steps[number - 1]
  const why = step ? gateBefore(run.mode, run.priority, step) : null
  return why === null ? { run: arrived, audit: [] } : openGate(arrived, why, nowMs)
}

/** Returns the run waiting before its step. Every gate of a run has an id of its own. */
export function openGate(run: SopRun, why: SopGate['why'], nowMs: number): Transition {
  const gates = run.gates + 1
  const gate: SopGate = { stepId: why === 'again' ? `step-${run.step}-again-${gates}` : `step-${run.step}`, sinceMs: nowMs, why }
  const waiting: SopRun = {
    ...run,
    status: why === 'checkpoint' ? 'paused_checkpoint' : 'waiting_approval',
    gate,
    gates,
    attempt: null,
    report: null,
  }
  return { run: waiting, audit: [stepRecord(waiting, 'approval_requested', nowMs, { detail: { gate: gate.stepId, why } })] }
}
