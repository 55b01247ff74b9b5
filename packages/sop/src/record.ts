/** Words for the audit log: one record of what happened to a run. */
import type { AuditKind, NewAudit, SopEvent, SopRun } from '@sluice/sdk'

/** Who did what follows by itself. */
export const ENGINE = 'engine'

const REASON_CHARS_MAX = 500

/** Cut to what a record, a reason or a line of a log holds. */
export const brief = (text: string, charsMax = REASON_CHARS_MAX): string =>
  text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).replace(/[\uD800-\uDBFF]$/, '')}…`

export interface RecordOptions {
  readonly by?: string
  readonly reason?: string | null
  readonly detail?: NewAudit['detail']
}

/** About the step the run is at; without `by`, it followed by itself. */
export const stepRecord = (
  run: SopRun,
  kind: AuditKind,
  atMs: number,
  { by = ENGINE, reason = null, detail = {} }: RecordOptions = {},
): NewAudit => ({
  kind,
  atMs,
  sop: run.sop,
  run: run.id,
  step: run.step,
  by,
  reason: reason === null ? null : brief(reason),
  detail,
})

/** About the run as a whole. */
export const runRecord = (run: SopRun, kind: AuditKind, atMs: number, options?: RecordOptions): NewAudit => ({
  ...stepRecord(run, kind, atMs, options),
  step: null,
})

/** Of an event that matched and started nothing. */
export const skippedRecord = (sop: string, event: SopEvent, reason: string): NewAudit => ({
  kind: 'trigger_skipped',
  atMs: event.atMs,
  sop,
  run: null,
  step: null,
  by: event.by,
  reason: brief(reason),
  detail: { source: event.source, topic: event.topic },
})
