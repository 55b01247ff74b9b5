/** The append-only audit log of procedures. Each record is chained to the previous one by its hash. */
import { AUDIT_ROOT, type AuditRow, actionRecord, auditHash, type Discard, type NewAudit, type SopStore } from '@sluice/sdk'
import { type AuditDialect, type ColdDatabase, conditionsOf, first, type Steps, statement } from './cold-database.ts'

const APPEND = `
  INSERT INTO sop_audit (number, kind, at, sop, run, step, by, reason, detail_json, previous, hash)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
const COLUMNS = 'number, kind, at AS "atMs", sop, run, step, by, reason, detail_json AS "detailJson", previous, hash'

/** A record as a row of its table. */
export interface AuditRecord extends Omit<AuditRow, 'detail'> {
  readonly detailJson: string
}

/** The record of a discarded dead letter. */
export const discardRecord = (
  box: 'inbox' | 'outbox',
  { number, channel }: { readonly number: number; readonly channel: string },
  { atMs, by }: Discard,
): NewAudit => actionRecord({ kind: 'delivery_discarded', atMs, by, detail: { box, number, channel } })

/** Appends records. Part of a transaction, as late as possible: other appending processes wait from here to the commit. */
export function* appendAudit({ head, setHead }: AuditDialect, records: readonly NewAudit[]): Steps<void> {
  if (records.length === 0) return
  const last = yield* first<{ readonly number: number; readonly hash: string }>(head)
  let { number, hash: previous } = last ?? { number: 0, hash: AUDIT_ROOT }
  const appended = records.map(wellFormed).map(({ detailJson, ...record }) => {
    number++
    const hash = auditHash({ ...record, number, previous }, detailJson)
    const { kind, atMs, sop, run, step, by, reason } = record
    const append = statement(APPEND, number, kind, atMs, sop, run, step, by, reason, detailJson, previous, hash)
    previous = hash
    return append
  })
  yield setHead === undefined ? appended : [...appended, statement(setHead, number, previous)]
}

/** The hash must match the text that is read back, and no store keeps invalid Unicode. */
export function wellFormed({
  kind,
  atMs,
  sop,
  run,
  step,
  by,
  reason,
  detail,
}: NewAudit): Omit<AuditRecord, 'number' | 'previous' | 'hash'> {
  return {
    kind,
    atMs,
    sop: sop.toWellFormed(),
    run: run?.toWellFormed() ?? null,
    step,
    by: by.toWellFormed(),
    reason: reason?.toWellFormed() ?? null,
    detailJson: JSON.stringify(detail),
  }
}

/** Resolves to the records after a number, in order. */
export function readAudit(db: ColdDatabase, { limit, after = 0, run, sop }: Parameters<SopStore['audit']>[0]): Promise<AuditRecord[]> {
  // A run has fewer records than its procedure.
  const named = conditionsOf(run === undefined ? { sop } : { run, [db.dialect.unindexed('sop')]: sop }, 3)
  const conditions = [...named.conditions, 'number > $1'].join(' AND ')
  return db.all<AuditRecord>(`SELECT ${COLUMNS} FROM sop_audit WHERE ${conditions} ORDER BY number LIMIT $2`, after, limit, ...named.values)
}

/** Returns the record as callers see it. */
export function toAuditRow({ detailJson, ...record }: AuditRecord): AuditRow {
  const { number, kind, atMs, sop, run, step, by, reason, previous, hash } = record
  return { number, kind, atMs, sop, run, step, by, reason, detail: JSON.parse(detailJson), previous, hash }
}
