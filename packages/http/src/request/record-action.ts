/** The record in the audit log of what an operator changes over the API. */
import type { Runtime } from '@sluice/runtime'
import { type AuditKind, actionRecord, type NewAudit } from '@sluice/sdk'

/** Resolves when the record is durable. `detail` has no secrets. */
export const recordAction = (
  { store, clock }: Pick<Runtime, 'store' | 'clock'>,
  kind: AuditKind,
  by: string,
  detail: NewAudit['detail'],
): Promise<void> => store.sops.record([actionRecord({ kind, atMs: clock.nowMs(), by, detail })])
