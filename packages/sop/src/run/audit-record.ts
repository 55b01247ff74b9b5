/** The records of the audit log that the engine writes. */
import type { AuditKind, NewAudit, SopEvent, SopRun } from '@sluice/sdk'

/** The actor of records that the engine itself causes. */
export const ENGINE = 'engine'

const REASON_CHARS_MAX = 500

/** Returns the text cut to `charsMax` characters, with an ellipsis for the rest; a surrogate pair is never split. */
export const brief = (text: string, charsMax = REASON_CHARS_MAX): string =>
  text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).replace(/[\uD800-\uDBFF]$/, '')}…`

export interface RecordOptions {
  /** `engine` unless given. */
  readonly by?: string
  readonly reason?: string | null
  readonly detail?: NewAudit['detail']
}

/** Returns a record about the step the run is at. */
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

/** Returns a record about the run as a whole. */
export const runRecord = (run: SopRun, kind: AuditKind, atMs: number, options?: RecordOptions): NewAudit => ({
  ...stepRecord(run, kind, atMs, options),
  step: null,
})

/** Returns the record of an event that matched a procedure but started no run. */
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
