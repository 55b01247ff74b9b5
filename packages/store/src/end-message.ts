/** The end of a message that came in, as part of the unit that makes it so. */
import type { Database } from './database.ts'

export const END_MESSAGE =
  "UPDATE inbox SET state = 'done', next_at = NULL, ended_at = ?, error = NULL WHERE number = ? AND ended_at IS NULL"
const ABORT_TURN = `
  UPDATE turns SET status = 'aborted', ended_at = ?1, checkpoint_json = NULL
  WHERE id = (SELECT turn_id FROM inbox WHERE number = ?2) AND ended_at IS NULL`

/** Nothing is to run for it: a turn that was begun is over with it. Returns false for a message that was over before. */
export function endMessage(db: Database, number: number, atMs: number): boolean {
  if (db.run(END_MESSAGE, atMs, number) === 0) return false
  db.run(ABORT_TURN, atMs, number)
  return true
}
