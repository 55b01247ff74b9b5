/** Creates a run, before it is stored, and brings a run that waits to its first step. */
import { MAIN_AGENT, type SopEvent, type SopLimits, type SopRun, type SopStart } from '@sluice/sdk'
import type { SopDefinition } from '../definition/definition.ts'
import { runRecord, skippedRecord } from './audit-record.ts'
import { arriveAt, type Transition } from './gates.ts'

export interface BeginRunOptions {
  readonly id: string
  readonly nowMs: number
  /** The largest number of runs at work of all procedures together; 0: no limit. */
  readonly concurrentTotal: number
}

/** The sources whose newest event makes older ones pointless: of each such trigger one run waits. */
const HOLD_ONE: readonly SopEvent['source'][] = ['cron', 'peripheral']

/** Returns the run at its first step with the audit records of its start, and as it waits, ready for the store. */
export function beginRun(definition: SopDefinition, event: SopEvent, { id, nowMs, concurrentTotal }: BeginRunOptions): SopStart {
  const { name, version, agent, description, priority, mode, steps } = definition
  const created: SopRun = {
    id,
    sop: name,
    version,
    ...(agent !== MAIN_AGENT && { agent }),
    description,
    priority,
    mode,
    steps,
    event,
    status: 'waiting',
    step: 1,
    gate: null,
    gates: 0,
    attempt: null,
    report: null,
    results: [],
    startedAtMs: nowMs,
    endedAtMs: null,
    reason: null,
  }
  return {
    ...begin(created, nowMs),
    limits: limitsOf(definition, concurrentTotal),
    holdsOne: HOLD_ONE.includes(event.source),
    skipped: (reason) => skippedRecord(name, event, reason),
    held(reason) {
      const { source, topic, by } = event
      return { run: { ...created, reason }, audit: [runRecord(created, 'run_waiting', nowMs, { by, reason, detail: { source, topic } })] }
    },
  }
}

/** Returns the run at its first step. */
export function begin(waiting: SopRun, nowMs: number): Transition {
  const { version, mode, priority, steps, event } = waiting
  const { run, audit } = arriveAt({ ...waiting, startedAtMs: nowMs, reason: null }, 1, nowMs)
  const started = runRecord(waiting, 'run_started', nowMs, {
    by: event.by,
    reason: `${event.source} ${event.topic}`,
    detail: { version, mode, priority, steps: steps.length, source: event.source, topic: event.topic },
  })
  return { run, audit: [started, ...audit] }
}

/** Returns the limits of a procedure. The waiting runs of a procedure that is not loaded begin one by one. */
export const limitsOf = (definition: SopDefinition | undefined, concurrentTotal: number): SopLimits => ({
  cooldownMs: (definition?.cooldownSecs ?? 0) * 1000,
  concurrentMax: definition?.maxConcurrent ?? 1,
  waitingMax: definition?.maxWaiting ?? 0,
  countsPaused: definition?.countWaiting ?? true,
  totalMax: concurrentTotal,
})
