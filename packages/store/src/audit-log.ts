/** The audit log of procedures: only ever appended to, each record chained to the one before it. */
import { AUDIT_ROOT, type AuditRow, auditHash, type NewAudit, type SopStore } from '@sluice/sdk'
import type { Database } from './database.ts'

// The counter of the table, and not its last row, says which number is next: a record that was cut off leaves a gap.
export const LAST_NUMBER = "SELECT seq AS number FROM sqlite_sequence WHERE name = 'sop_audit'"
const LAST_HASH = 'SELECT hash FROM sop_audit WHERE number = (SELECT max(number) FROM sop_audit)'
const APPEND = `
  INSERT INTO sop_audit (number, kind, at, sop, run, step, by, reason, detail_json, previous, hash)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const COLUMNS = 'number, kind, at AS atMs, sop, run, step, by, reason, detail_json AS detailJson, previous, hash'

/** As it lies in the table. */
export interface AuditRecord extends Omit<AuditRow, 'detail'> {
  readonly detailJson: string
}

/** The part of a unit that appends records. JSON is made here, outside the transaction. */
export function appending(db: Database, records: readonly NewAudit[]): () => void {
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

/** What is hashed has to be what is read back, and the file keeps no text that is not valid Unicode. */
function wellFormed({ kind, atMs, sop, run, step, by, reason, detail }: NewAudit): Omit<AuditRecord, 'number' | 'previous' | 'hash'> {
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

/** Those after a number, in order. */
export function readAudit(db: Database, { limit, after = 0, run, sop }: Parameters<SopStore['audit']>[0]): AuditRecord[] {
  // The plus sign has SQLite look for the run, which has fewer records than its procedure.
  const named = [
    { column: 'run', value: run },
    { column: run === undefined ? 'sop' : '+sop', value: sop },
  ].flatMap(({ column, value }) => (value === undefined ? [] : [{ condition: `${column} = ? AND `, value }]))
  const conditions = named.map(({ condition }) => condition).join('')
  const text = `SELECT ${COLUMNS} FROM sop_audit WHERE ${conditions}number > ? ORDER BY number LIMIT ?`
  return db.read(() => db.all<AuditRecord>(text, ...named.map(({ value }) => value), after, limit))
}

export function toAuditRow({ detailJson, ...record }: AuditRecord): AuditRow {
  const { number, kind, atMs, sop, run, step, by, reason, previous, hash } = record
  return { number, kind, atMs, sop, run, step, by, reason, detail: JSON.parse(detailJson), previous, hash }
}
