/** Carries out the edit or the deletion of a message, and ends the report of the change in the same commit. */
import type { MessageChange } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import { END_MESSAGE } from './message-attempt.ts'

const REPORT = 'SELECT 1 FROM inbox WHERE number = ? AND ended_at IS NULL'
/** A message that is not stored itself has not changed. */
const AS_READ = "turn_id IS NULL AND (?3 IS NULL OR coalesce(message_json, '') = '' OR message_json = ?3)"
const DELETE = `UPDATE inbox SET state = 'done', next_at = NULL, ended_at = ?1, error = NULL WHERE number = ?2 AND ended_at IS NULL AND ${AS_READ}`
const REPLACE = `UPDATE inbox SET message_json = ?1 WHERE number = ?2 AND ended_at IS NULL AND ${AS_READ}`

/** Returns the write; see `InboxStore.change`. */
export function prepareChange(db: Database, report: number, { number, was, message, atMs }: MessageChange): () => boolean {
  const json = message && JSON.stringify(message)
  const read = was ? JSON.stringify(was) : null
  return () => {
    if (!db.get(REPORT, report)) return false
    const changed = json === null ? db.run(DELETE, atMs, number, read) : db.run(REPLACE, json, number, read)
    if (changed > 0) db.run(END_MESSAGE, atMs, report)
    return changed > 0
  }
}
