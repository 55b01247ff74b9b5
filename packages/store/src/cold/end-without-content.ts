/** Ends a message that did nothing, and deletes its words. */
import { all, first, type Steps } from './cold-database.ts'
import type { EraseDialect } from './conversation-eraser.ts'

const END = `
  UPDATE inbox SET state = 'done', next_at = NULL, ended_at = $2, error = NULL, message_json = NULL WHERE number = $1 AND ended_at IS NULL
  RETURNING coalesce(batch, number) AS request`
/** Stands for the session of erased messages, which need no request. */
const NO_SESSION = ''

/** Ends the message with this number. The body of its request stays while a message of that request which is not done needs it. */
export function* endWithoutContent({ body }: Pick<EraseDialect, 'body'>, number: number, atMs: number): Steps<void> {
  const ended = yield* first<{ request: number }>(END, number, atMs)
  if (ended) yield* all(body, ended.request, NO_SESSION)
}
