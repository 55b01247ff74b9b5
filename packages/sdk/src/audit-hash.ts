/** The hash that chains one audit record to the one before it. */
import { sha256Hex } from './hmac.ts'
import type { AuditRow } from './sop-store.ts'

/** What the first record has before it. */
export const AUDIT_ROOT = '0'.repeat(64)

/** Over the JSON of a list with a fixed order; `detail` as the text it is kept as, so that reading it back changes nothing. */
export const auditHash = (record: Omit<AuditRow, 'hash' | 'detail'>, detailJson: string): string =>
  sha256Hex(
    JSON.stringify([
      record.previous,
      record.number,
      record.kind,
      record.atMs,
      record.sop,
      record.run,
      record.step,
      record.by,
      record.reason,
      detailJson,
    ]),
  )
