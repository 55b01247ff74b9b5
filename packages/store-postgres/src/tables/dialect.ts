/** What PostgreSQL does in its own way for the tables that both databases share. */
import { shardOf } from '@sluice/sdk'
import { type AuditDialect, all, type Dialect, first, statement, type Value } from '@sluice/store/shared'
import { MEMORY } from './memory.ts'
import { endedWithoutTurn } from './message-attempt.ts'
import { insertReplies, newsValues, numbersOf, QUEUE_NEWS, valuesOf } from './replies.ts'

// The limits count runs of all processes: starts take place one after the other.
const LOCK_STARTS = 'SELECT pg_advisory_xact_lock(7351, 0)'
const LOCK_CODES = 'SELECT pg_advisory_xact_lock(7353, 0)'
const END_MESSAGE = `WITH ${endedWithoutTurn('NULL')} SELECT number FROM ended`
const QUEUE = `${insertReplies(1, 'NULL::bigint', '')} RETURNING number`

// Processes append one after the other, because each record needs the hash of the last one.
export const AUDIT: AuditDialect = {
  head: 'SELECT number, hash FROM sop_audit_head FOR UPDATE',
  last: 'SELECT number FROM sop_audit_head',
  setHead: 'UPDATE sop_audit_head SET number = $1, hash = $2',
}

export const DIALECT: Dialect = {
  audit: AUDIT,
  sops: {
    lock: [statement(LOCK_STARTS)],
    columns: {
      shard: ({ id }) => shardOf(id),
      // A text of PostgreSQL has no NUL and no half of a pair, which its JSON spells out.
      starter: ({ event: { starter } }) => (starter === undefined ? null : JSON.stringify(starter)),
    },
    starter: 'starter',
  },
  approvals: {
    column: 'shard',
    // The approval of a tool call belongs to the shard of its turn.
    sql: (parameter) => `coalesce((SELECT shard FROM turns WHERE turns.id = $1 AND $3 = 'tool'), ${parameter})`,
    read: ({ runId }) => shardOf(runId),
  },
  memory: MEMORY,
  number: 'number',
  forUpdate: ' FOR UPDATE',
  lockCodes: [statement(LOCK_CODES)],
  among: (column, parameter, type) => `${column} = ANY (${parameter}::${type}[])`,
  unindexed: (column) => column,
  *endMessage(number, atMs) {
    return (yield* first(END_MESSAGE, number, atMs)) !== undefined
  },
  *queueReplies(replies) {
    return replies.length === 0 ? [] : numbersOf(yield* all(QUEUE, ...(valuesOf(replies) as Value[])))
  },
  *queueNews(news) {
    const rows = yield* all<{ readonly number: number | null }>(QUEUE_NEWS, ...(newsValues(news) as Value[]))
    return rows.flatMap(({ number }) => number ?? [])
  },
}
