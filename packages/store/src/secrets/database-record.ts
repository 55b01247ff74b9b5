/** The file `database-seen.json` of a data directory: how far a shared database had come when this machine last saw it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceDurably } from '@sluice/kit'
import type { DatabaseRecord, SeenDatabase } from '@sluice/sdk'

const RECORD = 'database-seen.json'

/** `dir` is the data directory. A file that cannot be read counts as absent: the daemon then believes the database. */
export function openDatabaseRecord(dir: string): DatabaseRecord {
  const file = join(dir, RECORD)
  return {
    read(database) {
      try {
        const { of, ...seen } = JSON.parse(readFileSync(file, 'utf8'))
        return of === database && isSeen(seen) ? seen : undefined
      } catch {
        return undefined
      }
    },
    write: (database, seen) => replaceDurably(file, `${JSON.stringify({ of: database, ...seen })}\n`),
  }
}

const isSeen = (value: Partial<SeenDatabase>): value is SeenDatabase =>
  (value.system === null || typeof value.system === 'string') &&
  (value.timeline === null || Number.isFinite(value.timeline)) &&
  (value.acceptedAtMs === null || Number.isFinite(value.acceptedAtMs)) &&
  Number.isFinite(value.commits)
