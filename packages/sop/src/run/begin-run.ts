/** Creates the first state of a run, before it is stored. */
import { MAIN_AGENT, type SopEvent, type SopRun, type SopStart } from '@sluice/sdk'
import type { SopDefinition } from '../definition/definition.ts'
import { runRecord, skippedRecord } from './audit-record.ts'
import { arriveAt } from './gates.ts'

export interface BeginRunOptions {
  readonly id: string
  readonly nowMs: number
  /** The largest number of unfinished runs of all procedures together. */
  readonly concurrentTotal: number
}

/** Returns the run at its first step with the audit records of its start, ready for the store. */
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
    status: 'running',
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
  const { run, audit } = arriveAt(created, 1, nowMs)
  const started = runRecord(created, 'run_started', nowMs, {
    by: event.by,
    reason: `${event.source} ${event.topic}`,
    detail: { version, mode, priority, steps: steps.length, source: event.source, topic: event.topic },
  })
  return {
    run,
    audit: [started, ...audit],
    limits: { cooldownMs: definition.cooldownSecs * 1000, concurrentMax: definition.maxConcurrent, totalMax: concurrentTotal },
    skipped: (reason) => skippedRecord(name, event, reason),
  }
}
