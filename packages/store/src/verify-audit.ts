/** Reads the audit log of procedures and checks that each record follows from the one before it. */
import { setImmediate } from 'node:timers/promises'
import { AUDIT_ROOT, auditHash, type SopStore } from '@sluice/sdk'
import { type AuditRecord, LAST_NUMBER, readAudit } from './audit-log.ts'
import type { Database } from './database.ts'

/** Records that are read before the event loop turns. */
const PAGE = 500

type Verdict = Awaited<ReturnType<SopStore['verify']>>
type Link = Pick<AuditRecord, 'number' | 'hash'>

/** Whoever rewrites every record from one on, with new hashes, is found out only by a hash of the log that was noted before. */
export async function verifyAudit(db: Database): Promise<Verdict> {
  let records = 0
  let last: Link = { number: 0, hash: AUDIT_ROOT }
  let broken: Verdict['broken'] = null
  // The log never gave a number below 1 away: whatever has one was put in.
  let after = Number.MIN_SAFE_INTEGER
  for (;;) {
    // Asked for before the page: a record of another process that comes between the two is in the page.
    const written = db.read(() => db.get<{ number: number }>(LAST_NUMBER))?.number ?? 0
    const page = readAudit(db, { limit: PAGE, after })
    for (const record of page) {
      broken ??= faultOf(record, last)
      last = record
      after = record.number
    }
    records += page.length
    if (page.length < PAGE) return { records, head: last.hash, broken: broken ?? cutOff(last, written) }
    await setImmediate()
  }
}

function faultOf(record: AuditRecord, last: Link): Verdict['broken'] {
  if (record.number < 1) return { number: record.number, why: `Record ${record.number} was put in.` }
  const expected = last.number + 1
  if (record.number !== expected) return { number: expected, why: missing(expected, record.number - 1) }
  if (record.previous !== last.hash) {
    return { number: expected, why: `Record ${expected} does not follow from what is before it.` }
  }
  if (auditHash(record, record.detailJson) !== record.hash) {
    return { number: expected, why: `Record ${expected} is not what was written.` }
  }
  return null
}

function cutOff({ number }: Link, written: number): Verdict['broken'] {
  return number < written ? { number: number + 1, why: missing(number + 1, written) } : null
}

const missing = (first: number, last: number): string =>
  first === last ? `Record ${first} is missing.` : `Records ${first} to ${last} are missing.`
