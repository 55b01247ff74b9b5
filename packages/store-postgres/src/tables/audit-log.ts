/** The append-only audit log of procedures. Each record is chained to the previous one by its hash. */
import { auditHash, type NewAudit, type SopStore } from '@sluice/sdk'
import { type AuditRecord, verifyRecords, wellFormed } from '@sluice/store/shared'
import { columnsOf, type Database } from '../connection/database.ts'
import type { Tx } from '../connection/group-commit.ts'

// Processes append one after the other, because each record needs the hash of the last one.
const HEAD = 'SELECT number, hash FROM sop_audit_head FOR UPDATE'
const LAST = 'SELECT number FROM sop_audit_head'
const SET_HEAD = 'UPDATE sop_audit_head SET number = $1, hash = $2'
const APPEND = `
  INSERT INTO sop_audit (number, kind, at, sop, run, step, by, reason, detail_json, previous, hash)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::float8[], $4::text[], $5::text[], $6::float8[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[])`
const COLUMNS = 'number, kind, at AS "atMs", sop, run, step, by, reason, detail_json AS "detailJson", previous, hash'

/** Part of a transaction, as late as possible: other appending processes wait from here to the commit. */
export async function appendAudit(tx: Tx, records: readonly NewAudit[]): Promise<void> {
  const texts = records.map(wellFormed)
  if (texts.length === 0) return
  const head = await tx.get<{ number: number; hash: string }>(HEAD)
  if (!head) throw new Error('the head of the audit log is missing')
  let { number, hash: previous } = head
  const rows = texts.map(({ detailJson, ...record }): AuditRecord => {
    number++
    const row = { ...record, number, previous }
    previous = auditHash(row, detailJson)
    return { ...row, detailJson, hash: previous }
  })
  await tx.all(
    APPEND,
    ...columnsOf(
      rows,
      (row) => row.number,
      ({ kind }) => kind,
      ({ atMs }) => atMs,
      ({ sop }) => sop,
      ({ run }) => run,
      ({ step }) => step,
      ({ by }) => by,
      ({ reason }) => reason,
      ({ detailJson }) => detailJson,
      (row) => row.previous,
      ({ hash }) => hash,
    ),
  )
  await tx.all(SET_HEAD, number, previous)
}

/** Returns the records after a number, in order. */
export function readAudit(db: Database, { limit, after = 0, run, sop }: Parameters<SopStore['audit']>[0]): Promise<AuditRecord[]> {
  const named = Object.entries({ run, sop }).flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]))
  const conditions = ['number > $1', ...named.map(({ column }, at) => `${column} = $${at + 3}`)]
  const text = `SELECT ${COLUMNS} FROM sop_audit WHERE ${conditions.join(' AND ')} ORDER BY number LIMIT $2`
  return db.all<AuditRecord>(text, after, limit, ...named.map(({ value }) => value))
}

export const verifyAudit = (db: Database): ReturnType<SopStore['verify']> =>
  verifyRecords({
    lastNumber: async () => (await db.get<{ number: number }>(LAST))?.number ?? 0,
    page: (after, limit) => readAudit(db, { limit, after }),
  })
