/** The start and the end of work on an inbox message. The attempt is counted and its turn is stored before anything runs. */
import { agentOfSession, type Inbound, type InboxStore, type SpentMessage, type StartedMessage, wordsOf } from '@sluice/sdk'
import { all, first, type Steps } from '../cold/cold-database.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import type { InboxColumns } from './inbox-row.ts'
import { waitsForPerson } from './turn-row.ts'

const START = `
  UPDATE inbox SET
    state = 'running', attempts = attempts + NOT ${waitsForPerson('inbox.turn_id')}, next_at = NULL, turn_id = coalesce(turn_id, ?)
  WHERE number = ? AND ended_at IS NULL AND (attempts < ? OR ${waitsForPerson('inbox.turn_id')})
  RETURNING
    channel, account, session, received_at, turn_id, attempts, draft, trace, replayed_at, approval_run_id, approval_step_id, message_json`
const SPENT = 'SELECT channel, account, turn_id AS turnId, attempts, draft FROM inbox WHERE number = ? AND ended_at IS NULL'
const START_TURN = `
  INSERT INTO turns (id, agent, session_id, owner, source, status, input, attempts, created_at, inbox, starts)
  VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, 1)
  ON CONFLICT DO UPDATE SET status = 'running', attempts = excluded.attempts, starts = starts + 1 WHERE ended_at IS NULL
  RETURNING checkpoint_json`
export const END_MESSAGE =
  "UPDATE inbox SET state = 'done', next_at = NULL, ended_at = ?, error = NULL WHERE number = ? AND ended_at IS NULL"
const ABORT_TURN = `
  UPDATE turns SET status = 'aborted', ended_at = ?1, checkpoint_json = NULL
  WHERE id = (SELECT turn_id FROM inbox WHERE number = ?2) AND ended_at IS NULL`

interface StartedColumns extends Pick<InboxColumns, 'channel' | 'account' | 'session' | 'received_at' | 'attempts'> {
  readonly turn_id: string
  readonly message_json: string | null
  readonly draft: string | null
  readonly trace: string | null
  readonly replayed_at: number | null
  readonly approval_run_id: string | null
  readonly approval_step_id: string | null
}

type Spent = Omit<SpentMessage, 'spent' | 'number'>

/** Returns the function that starts an attempt, or reports a message that has used up its attempts. */
export function createStart(db: Database, writer: Writer): InboxStore['start'] {
  return async (number, turnId, startsMax, given) => {
    const { row, message, checkpoint, spent } = await writer.write(() => startAttempt(db, { number, turnId, startsMax, given }))
    if (!row) return spent && { spent: true, number, ...spent }
    if (!message) throw new TypeError(`message ${number} is not stored and was not given`)
    return {
      number,
      channel: row.channel,
      account: row.account,
      session: row.session,
      message,
      ...approvalOf(row),
      receivedAtMs: row.received_at,
      sinceMs: row.replayed_at ?? row.received_at,
      turnId: row.turn_id,
      attempts: row.attempts,
      checkpoint: JSON.parse(checkpoint ?? '[]'),
      draft: row.draft,
      ...(row.trace !== null && { trace: row.trace }),
    }
  }
}

const approvalOf = ({ approval_run_id: runId, approval_step_id: stepId }: StartedColumns): Pick<StartedMessage, 'approval'> =>
  runId === null || stepId === null ? {} : { approval: { runId, stepId } }

interface Start {
  readonly number: number
  readonly turnId: string
  readonly startsMax: number
  /** Used unless the row has a message. */
  readonly given: Inbound | undefined
}

interface Outcome {
  readonly row?: StartedColumns
  readonly message?: Inbound | undefined
  readonly checkpoint?: string | null | undefined
  /** Given without a row when the message has used up its attempts. */
  readonly spent?: Spent | undefined
}

/** Part of a write: counts the attempt and stores its turn. */
function startAttempt(db: Database, { number, turnId, startsMax, given }: Start): Outcome {
  const row = db.get<StartedColumns>(START, turnId, number, startsMax)
  if (!row) return { spent: db.get<Spent>(SPENT, number) }
  const message: Inbound | undefined = row.message_json === null ? given : JSON.parse(row.message_json)
  const turn = [
    row.turn_id,
    agentOfSession(row.session),
    row.session,
    `channel:${row.channel}`,
    row.channel,
    message ? wordsOf(message) : null,
    row.attempts,
    row.received_at,
    number,
  ]
  return { row, message, checkpoint: db.get<{ checkpoint_json: string | null }>(START_TURN, ...turn)?.checkpoint_json }
}

/** Ends a message without running it, for a reason or none, and aborts the turn it may have started. Returns false if it had ended before. */
export function* endMessage(number: number, atMs: number, reason?: string): Steps<boolean> {
  if (!(yield* first(`${END_MESSAGE} RETURNING number`, atMs, number))) return false
  if (reason !== undefined) yield* all('UPDATE inbox SET error = ? WHERE number = ?', reason, number)
  yield* all(ABORT_TURN, atMs, number)
  return true
}
