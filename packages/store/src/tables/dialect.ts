/** What SQLite does in its own way for the tables in `cold`. */
import { AUDIT_ROOT } from '@sluice/sdk'
import type { AuditDialect, Dialect } from '../cold/cold-database.ts'
import { queueNews } from './admissions.ts'
import { MEMORY } from './memory.ts'
import { endMessage } from './message-attempt.ts'
import { queueReplies } from './replies.ts'

// The next number follows the counter of the table instead of its last row, so that a record cut off the end leaves a gap.
const LAST_NUMBER = "SELECT seq AS number FROM sqlite_sequence WHERE name = 'sop_audit'"

export const AUDIT: AuditDialect = {
  head: `
    SELECT coalesce((${LAST_NUMBER}), 0) AS number,
      coalesce((SELECT hash FROM sop_audit WHERE number = (SELECT max(number) FROM sop_audit)), '${AUDIT_ROOT}') AS hash`,
  last: LAST_NUMBER,
}

export const DIALECT: Dialect = {
  audit: AUDIT,
  sops: { lock: [], columns: {}, starter: "run_json -> '$.event.starter'" },
  memory: MEMORY,
  number: 'rowid',
  forUpdate: '',
  lockCodes: [],
  among: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  unindexed: (column) => `+${column}`,
  endMessage,
  queueReplies,
  queueNews,
}
