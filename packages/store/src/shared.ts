/** The parts that do not depend on SQLite, for a store on another database: how rows look to callers, hashed keys, and caches. */
export { APPROVAL_COLUMNS, type ApprovalColumns, approvalValues, type PromptColumns, toApproval } from './approval-row.ts'
export { type AuditRecord, discardRecord, toAuditRow, wellFormed } from './audit-log.ts'
export { hashKey, joinTexts, rowKey } from './hashed-keys.ts'
export { HistoryCache, type Recent } from './history-cache.ts'
export { type InboxColumns, toInboxRow } from './inbox-row.ts'
export { type KeyLimits, KeyTable, type KnownKeys } from './key-table.ts'
export { endOfPrefix, toBytes, toText } from './key-value.ts'
export { type OutboxColumns, toOutboxRow, toStartedReply } from './outbox-row.ts'
export { RecentIds } from './recent-ids.ts'
export { RESTORED } from './restored-at.ts'
export {
  type CostColumns,
  inputIn,
  type ListedColumns,
  listedTurn,
  type OpenColumns,
  openSessionsOf,
  periodCost,
  responseIn,
  type TurnColumns,
  toTurn,
} from './turn-row.ts'
export { QUARTER_MS } from './turns.ts'
export { verifyRecords } from './verify-audit.ts'
