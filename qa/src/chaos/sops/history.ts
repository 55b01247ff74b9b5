/** The data of a crash run of procedures: the recorded events in their order and a view of the store. The checks read nothing else. */
import type { Approval, AuditRow, OutboxRow, SopDispatch, SopRun } from '@sluice/sdk'
import type { Lived } from '../history.ts'

/** One event that a program posts again and again until it is accepted. */
export interface PostedEvent {
  /** Its idempotency key; appears in its payload and in every effect of its runs. */
  readonly mark: string
  readonly path: string
  /** The procedures that it has to start, each once. */
  readonly sops: readonly string[]
}

/** The way a person decides. */
export type Means = 'http' | 'press' | 'reply' | 'command'

/** One attempt to decide an approval. */
export interface Attempt {
  /** Unique; also the feedback, where the means allows one. */
  readonly tag: string
  readonly run: string
  readonly step: string
  readonly means: Means
  readonly approve: boolean
  /** The first part of the name under which the store records the person. */
  readonly by: string
  /** False for a person who may not decide. */
  readonly isEntitled: boolean
}

/** The effect of a step outside of the daemon: of `step` of `sop`, for the event `mark`. */
export interface Effect {
  readonly sop: string
  readonly step: number
  readonly mark: string
}

export type Seen =
  | Lived
  /** An event was accepted, with the result for each procedure; or it had been accepted before. */
  | { readonly type: 'accepted'; readonly mark: string; readonly results: readonly SopDispatch[] }
  | { readonly type: 'duplicate'; readonly mark: string }
  | { readonly type: 'refused'; readonly mark: string; readonly status: number }
  /** A run was started by hand, and the caller got its id. */
  | { readonly type: 'begun'; readonly run: string }
  | ({ readonly type: 'effect' } & Effect)
  /** A program asked for an approval, which is now open. */
  | { readonly type: 'opened'; readonly run: string; readonly step: string }
  | ({ readonly type: 'deciding' } & Attempt)
  /** The answer to an attempt: it decided, or the approval had been decided before. */
  | { readonly type: 'won'; readonly tag: string }
  | { readonly type: 'lost'; readonly tag: string; readonly state: string }
  /** A subscriber got the event of a decision. */
  | { readonly type: 'emitted'; readonly run: string; readonly step: string; readonly state: string }
  /** A subscriber followed a life of the daemon, with interruptions; `untilMs` is the time of the last event that it got. */
  | { readonly type: 'followed'; readonly fromMs: number; readonly untilMs: number }
  /** A copy of the store was read while no daemon ran. */
  | { readonly type: 'inspected'; readonly runs: readonly string[]; readonly problems: readonly string[] }
  | { readonly type: 'unexpected'; readonly detail: string }

export interface SopsHistory {
  readonly events: readonly PostedEvent[]
  readonly seen: readonly Seen[]
  /** The texts that the messenger has in the end, edits included. */
  readonly delivered: readonly string[]
}

export interface SopsView {
  /** Problems of the database file and of the hash chain of the audit log. */
  readonly problems: readonly string[]
  readonly runs: readonly SopRun[]
  readonly audit: readonly AuditRow[]
  readonly approvals: readonly Approval[]
  readonly outbox: readonly OutboxRow[]
  /** The lines that commands wrote. */
  readonly lines: readonly Effect[]
}

/** The name of an effect in violations. */
export const effectName = ({ sop, step, mark }: Effect): string => `${sop}/${step} of ${mark}`

/** The name of an approval in violations. */
export const gateName = (run: string, step: string): string => `${run} ${step}`

/** The mark of the event that started the run; its effects carry it. */
export function markOf({ event: { payload, source } }: SopRun): string {
  const values = JSON.parse(payload ?? '{}') as { readonly mark?: string; readonly scheduled_at?: string }
  return (source === 'cron' ? values.scheduled_at : values.mark) ?? ''
}
