/** A run as it is when an event starts it, before anything of it is kept (§4.3). */
import type { SopEvent, SopRun, SopStart } from '@sluice/sdk'
import type { SopDefinition } from './definition.ts'
import { arriveAt } from './gates.ts'
import { runRecord, skippedRecord } from './record.ts'

/** `concurrentTotal`: the most runs, over all procedures, that have not ended. */
export function beginRun(
  definition: SopDefinition,
  event: SopEvent,
  { id, nowMs, concurrentTotal }: { readonly id: string; readonly nowMs: number; readonly concurrentTotal: number },
): SopStart {
  const { name, version, description, priority, mode, steps } = definition
  const fresh: SopRun = {
    id,
    sop: name,
    version,
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
  const first = arriveAt(fresh, 1, nowMs)
  const started = runRecord(fresh, 'run_started', nowMs, {
    by: event.by,
    reason: `${event.source} ${event.topic}`,
    detail: { version, mode, priority, steps: steps.length, source: event.source, topic: event.topic },
  })
  return {
    run: first.run,
    audit: [started, ...first.audit],
    limits: { cooldownMs: definition.cooldownSecs * 1000, concurrentMax: definition.maxConcurrent, totalMax: concurrentTotal },
    skipped: (reason) => skippedRecord(name, event, reason),
  }
}
