/** Carries out the edit or the deletion of a message, and ends the report of the change in the same commit. */
import type { MessageChange } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import { END_MESSAGE } from './message-attempt.ts'

const REPORT = 'SELECT 1 FROM inbox WHERE number = ? AND ended_at IS NULL'
const DELETE = `${END_MESSAGE} AND turn_id IS NULL`
const REPLACE = 'UPDATE inbox SET message_json = ? WHERE number = ? AND ended_at IS NULL AND turn_id IS NULL'

/** Returns the write; see `InboxStore.change`. */
export function prepareChange(db: Database, report: number, { number, message, atMs }: MessageChange): () => boolean {
  const json = message && JSON.stringify(message)
  return () => {
    if (!db.get(REPORT, report)) return false
    const changed = json === null ? db.run(DELETE, atMs, number) : db.run(REPLACE, json, number)
    if (changed > 0) db.run(END_MESSAGE, atMs, report)
    return changed > 0
  }
}
