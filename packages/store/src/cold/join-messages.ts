/** Gives the words of messages to another message, or to its running turn, in one commit. */
import { AppError, type MessageJoin } from '@sluice/sdk'
import { first, type Steps } from './cold-database.ts'

/** The condition that a message waits and is as it was read. A message that is not stored itself, only the body of its request, has not changed. */
const waits = (json: string): string =>
  `ended_at IS NULL AND turn_id IS NULL AND (coalesce(message_json, '') = '' OR message_json = ${json})`
const REPLACE = `UPDATE inbox SET message_json = $2 WHERE number = $1 AND ${waits('$3')} RETURNING number`
const CHECKPOINT = 'UPDATE turns SET checkpoint_json = $2 WHERE id = $1 AND ended_at IS NULL RETURNING id'
const END_PIECE = `
  UPDATE inbox SET state = 'done', next_at = NULL, ended_at = $2, error = NULL, joined = $3, turn_id = $4
  WHERE number = $1 AND ${waits('$5')} RETURNING number`

/** Throws `conflict`, so that nothing is stored, when one of the messages has changed, begun or ended. */
export function* joinMessages({ number, into, pieces, atMs }: MessageJoin): Steps<void> {
  if ('turnId' in into) requireRow(yield* first(CHECKPOINT, into.turnId, JSON.stringify(into.messages)))
  else requireRow(yield* first(REPLACE, number, JSON.stringify(into.joined), JSON.stringify(into.was)))
  const turnId = 'turnId' in into ? into.turnId : null
  for (const piece of pieces) requireRow(yield* first(END_PIECE, piece.number, atMs, number, turnId, JSON.stringify(piece.message)))
}

function requireRow(row: unknown): void {
  if (!row) throw new AppError('conflict', 'The message has changed, or no longer waits')
}

/** Resolves to false when `join` rejects because a message has changed. */
export async function hasJoined(join: Promise<void>): Promise<boolean> {
  try {
    await join
    return true
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict') return false
    throw error
  }
}
