/** What the daemon and its commands know about backups without loading the code that writes and restores them. */
export { JOURNAL_FILE } from './contents.ts'
export { type BackupRecord, backupRecordSchema, readRecord, writeRecord } from './record.ts'
