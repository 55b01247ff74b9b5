/** The record of the last backup, in the data directory, for `sluice status`, `sluice doctor` and the schedule. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceDurably } from '@sluice/kit'
import * as v from 'valibot'
import { RECORD_FILE } from './contents.ts'

const lastSchema = v.object({
  at: v.pipe(v.string(), v.isoTimestamp()),
  file: v.string(),
  bytes: v.number(),
  encrypted: v.boolean(),
  with_secrets: v.boolean(),
})

const recordSchema = v.object({
  /** The last backup that was written and verified. */
  last: v.nullable(lastSchema),
  /** The failure of the last attempt; null if that succeeded. */
  failure: v.nullable(v.object({ at: v.pipe(v.string(), v.isoTimestamp()), error: v.string() })),
})

export type BackupRecord = v.InferOutput<typeof recordSchema>
export const backupRecordSchema = recordSchema

/** Returns the record of a data directory; one without backups if the file is missing or cannot be read. */
export function readRecord(dataDir: string): BackupRecord {
  try {
    return v.parse(recordSchema, JSON.parse(readFileSync(join(dataDir, RECORD_FILE), 'utf8')))
  } catch {
    return { last: null, failure: null }
  }
}

/** Throws errors of the file system. */
export const writeRecord = (dataDir: string, record: BackupRecord): void =>
  replaceDurably(join(dataDir, RECORD_FILE), `${JSON.stringify(record, null, 1)}\n`)
