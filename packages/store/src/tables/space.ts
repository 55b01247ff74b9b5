/** Measures the space that the store uses and returns unused space to the file system. */
import { statSync } from 'node:fs'
import type { StoreUsage } from '@sluice/sdk'
import { copiesOf } from '../connection/copy-before-upgrade.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'

/** Unused pages that stay in the file for the next writes. */
const UNUSED_PAGES_MAX = 256
/** The number of pages returned in one transaction. */
const PAGES_SLICE = 128

const PAGES = `
  SELECT page_count AS pages, freelist_count AS unused, page_size AS size
  FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`
/** Bytes of an audit record besides its texts, with its index entries. */
const AUDIT_EXTRA_BYTES = 120
// Estimates the size of the audit log from its newest records, because reading all of them takes too long.
const AUDIT_BYTES = `
  SELECT (SELECT max(number) FROM sop_audit) - (SELECT min(number) FROM sop_audit) + 1 AS records, avg(bytes) AS average
  FROM (
    SELECT octet_length(detail_json) + 2 * coalesce(octet_length(run), 0) + 2 * octet_length(sop) + coalesce(octet_length(reason), 0)
      + octet_length(by) + octet_length(previous) + octet_length(hash) + ${AUDIT_EXTRA_BYTES} AS bytes
    FROM sop_audit WHERE number > (SELECT max(number) FROM sop_audit) - 200 AND number <= (SELECT max(number) FROM sop_audit))`
const UPGRADED = 'SELECT max(at) AS atMs FROM upgrades'
const EMPTY_LOG = 'PRAGMA wal_checkpoint(TRUNCATE)'

interface Pages {
  readonly pages: number
  readonly unused: number
  readonly size: number
}

const pagesOf = (db: Database): Pages => db.get<Pages>(PAGES) ?? { pages: 0, unused: 0, size: 0 }

/** Returns the bytes in use without the audit log, whose size is an estimate. */
export function usedBytes(db: Database): number {
  const { pages, unused, size } = pagesOf(db)
  const { records, average } = db.get<{ records: number | null; average: number | null }>(AUDIT_BYTES) ?? {}
  return Math.max(0, (pages - unused) * size - Math.round((records ?? 0) * (average ?? 0)))
}

/** Returns the sizes and copies of the store for `doctor`. */
export const usageOf = (db: Database, file: string): StoreUsage =>
  db.read(() => ({
    bytes: usedBytes(db),
    fileBytes: [file, `${file}-wal`].reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0),
    upgradedAtMs: db.get<{ atMs: number | null }>(UPGRADED)?.atMs ?? null,
    copies: copiesOf(file).map((copy) => copy.file),
  }))

/** Returns unused pages to the file system, a few in each transaction, until `keptMax` are left. */
export async function shrink(db: Database, writer: Writer, keptMax = UNUSED_PAGES_MAX): Promise<void> {
  const before = pagesOf(db).unused
  await returnPages(db, writer, before, keptMax)
  // The file shrinks only when the log is written to it, which an idle daemon does not do by itself.
  if (pagesOf(db).unused < before) db.exec('PRAGMA wal_checkpoint(PASSIVE)')
}

async function returnPages(db: Database, writer: Writer, unusedAtStart: number, keptMax: number): Promise<void> {
  for (let unused = unusedAtStart; unused > keptMax; ) {
    const left = await writer.write(() => {
      db.exec(`PRAGMA incremental_vacuum(${Math.min(PAGES_SLICE, unused - keptMax)})`)
      return pagesOf(db).unused
    })
    // A file that was not rewritten at its upgrade cannot shrink.
    if (left >= unused) return
    unused = left
  }
}

/** Empties the write-ahead log, so that it holds no earlier state of any page. Returns false while another process reads it. */
export const emptyLog = (db: Database): boolean => db.get<{ busy: number }>(EMPTY_LOG)?.busy === 0
