/**
 * The port of procedure runs and their audit log. A method that writes resolves when its change is on stable storage. A change and
 * its audit records are one commit.
 */

import type { MessageNews } from './delivery-store.ts'
import type { IdempotencyKey } from './idempotency.ts'
import type { SopDispatch, SopRun, SopRunStatus } from './sop.ts'
import type { SopLimits } from './sop-limits.ts'

export type AuditKind =
  | 'run_waiting'
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
  | 'run_expired'
  | 'conversation_erased'
  | 'conversation_read'
  | 'delivery_discarded'
  | 'config_changed'
  | 'tools_accepted'
  | 'skill_accepted'
  | 'skill_added'
  | 'skill_removed'
  | 'plugin_installed'
  | 'plugin_removed'
  | 'procedure_accepted'
  | 'procedures_adopted'
  | 'procedure_written'
  | 'pairing_code_created'
  | 'device_added'
  | 'device_revoked'
  | 'token_replaced'
  | 'passkey_registered'
  | 'passkey_removed'
  | 'notifications_removed'
  | 'channel_linked'
  | 'channel_unlinked'
  | 'delivery_replayed'
  | 'memories_deleted'
  | 'memories_assigned'
  | 'limits_reset'
  | 'room_changed'
  | 'room_erased'
  | 'people_code_created'
  | 'people_linked'
  | 'people_link_refused'
  | 'people_confirmed'
  | 'people_unlinked'
  | 'node_drained'
  | 'node_undrained'

/** The record of a transition. */
export interface NewAudit {
  readonly kind: AuditKind
  readonly atMs: number
  /** The procedure; empty when the record belongs to none. */
  readonly sop: string
  /** The run; null for a trigger that started nothing. */
  readonly run: string | null
  readonly step: number | null
  /** The cause, as in `SopEvent.by` and `Approval.by`; `engine` for automatic transitions. */
  readonly by: string
  readonly reason: string | null
  /** Plain data without secrets. */
  readonly detail: Readonly<Record<string, unknown>>
}

export interface AuditRow extends NewAudit {
  /** The number, from 1 without gaps. */
  readonly number: number
  /** The hash of the previous record; 64 zeros for the first. */
  readonly previous: string
  /** The SHA-256 in hex of `previous` and all other members (`auditHash`). */
  readonly hash: string
}

/** A run of a matching procedure, ready to start. */
export interface SopStart {
  readonly run: SopRun
  readonly audit: readonly NewAudit[]
  readonly limits: SopLimits
  /** True: of the runs with the same source and topic one waits, the newest, which takes the place of the one before. */
  readonly holdsOne: boolean
  /** Makes the record for an event that is not taken. */
  skipped(reason: string): NewAudit
  /** Makes the run that waits, with its records. */
  held(reason: string): { readonly run: SopRun; readonly audit: readonly NewAudit[] }
}

/** A run that a limit holds back. */
export interface WaitingSopRun {
  readonly id: string
  readonly sop: string
  /** The time of its event. */
  readonly sinceMs: number
}

export interface SopStore {
  /**
   * Starts the runs that no limit prevents and stores runs that wait, in order, as `judgeStart` says; each counts the earlier ones. An
   * event with a known key starts nothing and resolves to its first answer. In both cases the same commit marks the idempotency key and
   * the inbox message as done, unless every run is skipped. `repeats` is described at `FireOptions`.
   */
  start(
    starts: readonly SopStart[],
    about: {
      readonly atMs: number
      readonly key?: string
      readonly idempotency?: IdempotencyKey
      readonly inbox?: number
      readonly repeats?: boolean
    },
  ): Promise<readonly SopDispatch[]>
  /** Lists the runs that a limit holds back, by priority and then in the order in which they arrived. */
  waiting(): Promise<readonly WaitingSopRun[]>
  /**
   * Replaces a waiting run by the run that has begun, if no limit prevents it. Resolves to `changed` when the run has changed since it
   * was read, and otherwise to the time in which its procedure has cooled down; null when another run has to end first.
   */
  begin(
    start: { readonly before: SopRun; readonly after: SopRun; readonly audit: readonly NewAudit[]; readonly limits: SopLimits },
    atMs: number,
  ): Promise<'begun' | 'changed' | { readonly inMs: number | null }>
  /**
   * Replaces a run, and queues the notice if it is news. Resolves to the outbox numbers of the notice, or to false, and then records nothing,
   * when the run has changed since it was read.
   */
  advance(before: SopRun, after: SopRun, audit: readonly NewAudit[], news?: MessageNews): Promise<readonly number[] | false>
  /** Appends records that belong to no transition. */
  record(audit: readonly NewAudit[]): Promise<void>
  get(runId: string): Promise<SopRun | undefined>
  /** Lists runs, newest first. `active` selects unfinished runs (true) or ended ones (false). */
  runs(filter: {
    readonly limit: number
    readonly sop?: string
    readonly active?: boolean
    readonly status?: SopRunStatus
    readonly before?: string
    /** Only the runs that this person has started. */
    readonly starter?: string
  }): Promise<SopRun[]>
  /** Counts the runs of each procedure that have begun and not ended. */
  activeCounts(): Promise<ReadonlyMap<string, number>>
  /** Lists records in order, of one run or all. */
  audit(filter: { readonly limit: number; readonly after?: number; readonly run?: string; readonly sop?: string }): Promise<AuditRow[]>
  /** Verifies the numbers and hashes of the whole log. Resolves to the number of records and the first broken one. */
  verify(): Promise<{
    readonly records: number
    readonly head: string
    readonly broken: { readonly number: number; readonly why: string } | null
  }>
  /** Deletes all but the newest `finishedMax` ended runs (0 keeps all) and event keys from before `keysBeforeMs`. Never deletes audit records. */
  prune(limits: { readonly finishedMax: number; readonly keysBeforeMs: number }): Promise<number>
}

/** The runs as the holder of a lease uses them. */
export interface OwnedSopStore extends SopStore {
  /**
   * Lists runs that have begun and not ended in the shards of the lease, oldest first, after the id of a run. The shard of a run is that of
   * its id.
   */
  unfinished(options: { readonly after: string | null; readonly limit: number }): Promise<SopRun[]>
}
