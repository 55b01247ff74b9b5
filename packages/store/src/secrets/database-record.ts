/** The file `database-seen.json` of a data directory: how far a shared database had come when this machine last saw it. */
import { join } from 'node:path'
import type { DatabaseRecord, SeenDatabase } from '@sluice/sdk'
import { openRecordFile } from './record-file.ts'

const RECORD = 'database-seen.json'

/** `dir` is the data directory. */
export function openDatabaseRecord(dir: string): DatabaseRecord {
  const file = openRecordFile(join(dir, RECORD))
  return {
    read(database) {
      const seen: Partial<SeenDatabase> | undefined = file.read(database)
      return seen && isSeen(seen) ? seen : undefined
    },
    write: file.write,
  }
}

const isSeen = (value: Partial<SeenDatabase>): value is SeenDatabase =>
  (value.system === null || typeof value.system === 'string') &&
  (value.timeline === null || Number.isFinite(value.timeline)) &&
  (value.acceptedAtMs === null || Number.isFinite(value.acceptedAtMs)) &&
  Number.isFinite(value.commits)
