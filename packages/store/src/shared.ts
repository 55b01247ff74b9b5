/** The parts that do not depend on SQLite, for a store on another database: the tables in `cold`, how rows look to callers, and caches. */

export { type AdmissionWrites, createAdmissions } from './cold/admissions.ts'
export { APPROVAL_COLUMNS, type ApprovalColumns } from './cold/approval-row.ts'
export { createApprovals, numberOf, withPrompts } from './cold/approvals.ts'
export { type AuditRecord, appendAudit, discardRecord } from './cold/audit-log.ts'
export {
  type AuditDialect,
  all,
  type ColdDatabase,
  type Dialect,
  first,
  type MemoryDialect,
  type Statement,
  type Steps,
  statement,
  type Value,
} from './cold/cold-database.ts'
export { type EraseDialect, eraseConversation } from './cold/conversation-eraser.ts'
export { createDevices, type DeviceColumns, deviceByToken, isValid, toDevice } from './cold/devices.ts'
export { type EndDialect, endUnfinished } from './cold/end-unfinished.ts'
export { endWithoutContent } from './cold/end-without-content.ts'
export { hasJoined, joinMessages } from './cold/join-messages.ts'
export { createKeyValue } from './cold/key-value.ts'
export { knownKeys } from './cold/known-keys.ts'
export { createMemory, MEMORY_COLUMNS, READABLE } from './cold/memory.ts'
export { NEEDING, type PruneDialect, prunable, prune } from './cold/prune.ts'
export type { RowSigning } from './cold/row-signing.ts'
export { createSessions, SESSION_COLUMNS, type SessionReads } from './cold/sessions.ts'
export { createSops } from './cold/sops.ts'
export { SUMMARY, type SummaryColumns, toSummary } from './cold/summaries.ts'
export { verifyRecords } from './cold/verify-audit.ts'
export { RESTORED } from './schema/restored-at.ts'
export { hashKey, joinTexts, rowKey } from './tables/hashed-keys.ts'
export { HistoryCache, type Recent } from './tables/history-cache.ts'
export { type InboxColumns, type SessionColumns, toInboxRow, toSessionMessage } from './tables/inbox-row.ts'
export { endOfPrefix, toBytes, toText } from './tables/key-bytes.ts'
export { type KeyLimits, KeyTable, type KnownKeys } from './tables/key-table.ts'
export { indexedWords, searchedWords, similarWords } from './tables/memory-words.ts'
export { ASKS, type OutboxColumns, type StartedColumns, toOutboxRow, toStartedReply } from './tables/outbox-row.ts'
export { RecentIds } from './tables/recent-ids.ts'
export {
  type CostColumns,
  inputIn,
  type ListedColumns,
  listedTurn,
  type OpenColumns,
  openSessionsOf,
  periodCost,
  QUARTER_MS,
  responseIn,
  stepsJson,
  type TurnColumns,
  toTurn,
} from './tables/turn-row.ts'
