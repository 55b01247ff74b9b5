/**
 * The port of procedure runs and their audit log. A method that writes resolves once its change is on stable storage, and
 * what it changes and what it records are one commit.
 */
import type { SopDispatch, SopRun, SopRunStatus } from './sop.ts'
import type { IdempotencyKey } from './store.ts'

export type AuditKind =
  | 'run_started'
  | 'trigger_skipped'
  | 'step_started'
  | 'step_completed'
  | 'step_failed'
  | 'step_skipped'
  | 'step_cut'
  | 'approval_requested'
  | 'approved'
  | 'rejected'
  | 'expired'
  | 'reported'
  | 'device_write'
  | 'run_completed'
  | 'run_failed'
  | 'run_cancelled'
  | 'conversation_erased'

/** What is recorded of a transition. */
export interface NewAudit {
  readonly kind: AuditKind
  readonly atMs: number
  /** Empty for what belongs to no procedure. */
  readonly sop: string
  /** Null for a trigger that started nothing. */
  readonly run: string | null
  readonly step: number | null
  /** Who: as in `SopEvent.by` and `Approval.by`; `engine` for what follows by itself. */
  readonly by: string
  readonly reason: string | null
  /** JSON; no secret. */
  readonly detail: Readonly<Record<string, unknown>>
}

export interface AuditRow extends NewAudit {
  /** From 1, without gaps. */
  readonly number: number
  /** SHA-256, hex: of the record before; 64 zeros for the first. */
  readonly previous: string
  /** SHA-256, hex, of `previous` and everything else in the record (`auditHash`). */
  readonly hash: string
}

/** One procedure an event matches, ready to run. */
export interface SopStart {
  readonly run: SopRun
  readonly audit: readonly NewAudit[]
  readonly limits: { readonly cooldownMs: number; readonly concurrentMax: number; readonly totalMax: number }
  /** What is recorded when a limit holds it back. */
  skipped(reason: string): NewAudit
}

export interface SopStore {
  /**
   * Starts what no limit holds back, in order, each seeing those before it. An event of a known key starts nothing and
   * resolves to its first answer. Either way the idempotency key and the inbox message are done in the same commit.
   */
  start(
    starts: readonly SopStart[],
    about: { readonly atMs: number; readonly key?: string; readonly idempotency?: IdempotencyKey; readonly inbox?: number },
  ): Promise<readonly SopDispatch[]>
  /** Replaces a run as it was read: false if it has changed since, and nothing is recorded then. */
  advance(before: SopRun, after: SopRun, audit: readonly NewAudit[]): Promise<boolean>
  /** Appends what belongs to no transition. */
  record(audit: readonly NewAudit[]): Promise<void>
  get(runId: string): Promise<SopRun | undefined>
  /** Newest first. `active`: those that have not ended, or only those that have. */
  runs(filter: {
    readonly limit: number
    readonly sop?: string
    readonly active?: boolean
    readonly status?: SopRunStatus
    readonly before?: string
  }): Promise<SopRun[]>
  /** Those that have not ended, oldest first, after a run's id. */
  unfinished(options: { readonly after: string | null; readonly limit: number }): Promise<SopRun[]>
  activeCounts(): Promise<ReadonlyMap<string, number>>
  /** In order; of one run or of all. */
  audit(filter: { readonly limit: number; readonly after?: number; readonly run?: string; readonly sop?: string }): Promise<AuditRow[]>
  /** Reads the whole log and checks numbers and hashes; resolves to the first record that does not fit, and how many there are. */
  verify(): Promise<{
    readonly records: number
    readonly head: string
    readonly broken: { readonly number: number; readonly why: string } | null
  }>
  /** Drops all but the newest `finishedMax` ended runs (0: keeps all) and the event keys from before `keysBeforeMs`; never audit records. */
  prune(limits: { readonly finishedMax: number; readonly keysBeforeMs: number }): Promise<number>
}
