/** Verifies that each record of the audit log follows from the previous one. */
import { setImmediate } from 'node:timers/promises'
import { AUDIT_ROOT, auditHash, type SopStore } from '@sluice/sdk'
import { type AuditRecord, readAudit } from './audit-log.ts'
import type { ColdDatabase } from './cold-database.ts'

/** The number of records read before the event loop goes on. */
const PAGE_SIZE = 500

type Verification = Awaited<ReturnType<SopStore['verify']>>
type Link = Pick<AuditRecord, 'number' | 'hash'>

/** An attacker who rewrites all records from one on, with new hashes, is detected only by a head hash that was noted earlier. */
export const verifyAudit = (db: ColdDatabase): Promise<Verification> =>
  verifyRecords({
    lastNumber: async () => (await db.get<{ number: number }>(db.dialect.audit.last))?.number ?? 0,
    page: (after, limit) => readAudit(db, { limit, after }),
  })

/** Reads of the stored log. */
export interface StoredAudit {
  /** The number of the last record that was written, also when it was cut off. */
  lastNumber(): number | Promise<number>
  page(after: number, limit: number): readonly AuditRecord[] | Promise<readonly AuditRecord[]>
}

/** Verifies a log, whatever stores it. */
export async function verifyRecords(stored: StoredAudit): Promise<Verification> {
  let records = 0
  let last: Link = { number: 0, hash: AUDIT_ROOT }
  let broken: Verification['broken'] = null
  // The log starts at number 1, so a record with a lower number was inserted by other means.
  let after = Number.MIN_SAFE_INTEGER
  for (;;) {
    // Read before the page, so that a record that another process appends in between is in the page.
    const written = await stored.lastNumber()
    const page = await stored.page(after, PAGE_SIZE)
    for (const record of page) {
      broken ??= faultOf(record, last)
      last = record
      after = record.number
    }
    records += page.length
    if (page.length < PAGE_SIZE) return { records, head: last.hash, broken: broken ?? missingAtEnd(last, written) }
    await setImmediate()
  }
}

function faultOf(record: AuditRecord, last: Link): Verification['broken'] {
  if (record.number < 1) return { number: record.number, why: `Record ${record.number} was inserted.` }
  const expected = last.number + 1
  if (record.number !== expected) return { number: expected, why: missing(expected, record.number - 1) }
  if (record.previous !== last.hash) {
    return { number: expected, why: `Record ${expected} does not follow from the previous record.` }
  }
  if (auditHash(record, record.detailJson) !== record.hash) {
    return { number: expected, why: `Record ${expected} was changed.` }
  }
  return null
}

function missingAtEnd({ number }: Link, written: number): Verification['broken'] {
  return number < written ? { number: number + 1, why: missing(number + 1, written) } : null
}

const missing = (first: number, last: number): string =>
  first === last ? `Record ${first} is missing.` : `Records ${first} to ${last} are missing.`
