/** The hash that chains an audit record to the one before it. */

import type { AuditRow } from '../store/sop-store.ts'
import { sha256Hex } from '../values/hmac.ts'

/** The `previous` of the first record. */
export const AUDIT_ROOT = '0'.repeat(64)

/** Hashes the JSON of a list in a fixed order. `detail` is hashed as its stored text, so that reading it back changes nothing. */
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
