/** The append-only audit log of procedures. Each record is chained to the previous one by its hash. */
import { AUDIT_ROOT, type AuditRow, actionRecord, auditHash, type Discard, type NewAudit, type SopStore } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'

// The next number follows the counter of the table instead of its last row, so that a record cut off the end leaves a gap.
export const LAST_NUMBER = "SELECT seq AS number FROM sqlite_sequence WHERE name = 'sop_audit'"
const LAST_HASH = 'SELECT hash FROM sop_audit WHERE number = (SELECT max(number) FROM sop_audit)'
const APPEND = `
  INSERT INTO sop_audit (number, kind, at, sop, run, step, by, reason, detail_json, previous, hash)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const COLUMNS = 'number, kind, at AS atMs, sop, run, step, by, reason, detail_json AS detailJson, previous, hash'

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

/** Builds the JSON outside the transaction. The returned part of a write appends the records. */
export function prepareAudit(db: Database, records: readonly NewAudit[]): () => void {
  const texts = records.map(wellFormed)
  return () => {
    if (texts.length === 0) return
    let number = db.get<{ number: number }>(LAST_NUMBER)?.number ?? 0
    let previous = db.get<{ hash: string }>(LAST_HASH)?.hash ?? AUDIT_ROOT
    for (const { detailJson, ...record } of texts) {
      number++
      const hash = auditHash({ ...record, number, previous }, detailJson)
      const { kind, atMs, sop, run, step, by, reason } = record
      db.run(APPEND, number, kind, atMs, sop, run, step, by, reason, detailJson, previous, hash)
      previous = hash
    }
  }
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
export function readAudit(db: Database, { limit, after = 0, run, sop }: Parameters<SopStore['audit']>[0]): Promise<AuditRecord[]> {
  // The plus sign makes SQLite use the index of runs: a run has fewer records than its procedure.
  const named = [
    { column: 'run', value: run },
    { column: run === undefined ? 'sop' : '+sop', value: sop },
  ].flatMap(({ column, value }) => (value === undefined ? [] : [{ condition: `${column} = ? AND `, value }]))
  const conditions = named.map(({ condition }) => condition).join('')
  const text = `SELECT ${COLUMNS} FROM sop_audit WHERE ${conditions}number > ? ORDER BY number LIMIT ?`
  return db.page<AuditRecord>(text, ...named.map(({ value }) => value), after, limit)
}

/** Returns the record as callers see it. */
export function toAuditRow({ detailJson, ...record }: AuditRecord): AuditRow {
  const { number, kind, atMs, sop, run, step, by, reason, previous, hash } = record
  return { number, kind, atMs, sop, run, step, by, reason, detail: JSON.parse(detailJson), previous, hash }
}
