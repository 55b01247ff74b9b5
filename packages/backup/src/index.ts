/** The facts about backups that the daemon and its commands need without the code that writes and restores them. */
export { JOURNAL_FILE } from './contents.ts'
export { type BackupRecord, backupRecordSchema, readRecord, writeRecord } from './record.ts'
