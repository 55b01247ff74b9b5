/** How a run comes to a step: it may go on at once, or it waits for a person first. */
import type { NewAudit, SopGate, SopRun } from '@sluice/sdk'
import { gateBefore } from './gate-before.ts'
import { stepRecord } from './record.ts'

/** A run after something happened to it, and what is recorded of that. */
export interface Moved {
  readonly run: SopRun
  readonly audit: readonly NewAudit[]
}

/** The run at its step `number`: running, or waiting as its mode demands. */
export function arriveAt(run: SopRun, number: number, nowMs: number): Moved {
  const at: SopRun = { ...run, status: 'running', step: number, gate: null, attempt: null, report: null }
  const step = run.steps[number - 1]
  const why = step ? gateBefore(run.mode, run.priority, step) : null
  return why === null ? { run: at, audit: [] } : openGate(at, why, nowMs)
}

/** The run, waiting before its step. No two gates of a run have the same id. */
export function openGate(run: SopRun, why: SopGate['why'], nowMs: number): Moved {
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
