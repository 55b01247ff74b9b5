/** The start and the end of work on an inbox message. The attempt is counted and its turn is stored before anything runs. */
import { type Inbound, type InboxStore, type SpentMessage, type StartedMessage, wordsOf } from '@sluice/sdk'
import { sql } from '../connection/connection.ts'
import { columnsOf, type Database, isOpen } from '../connection/database.ts'
import type { Kind } from '../connection/group-commit.ts'

/** Returns the SQL condition that a turn waits for a person, because the approval of a tool call is open. `turn` is the SQL of its id. */
export const waitsForPerson = (turn: string): string =>
  `EXISTS (SELECT 1 FROM approvals WHERE run_id = ${turn} AND gate = 'tool' AND state = 'pending')`

// The turn has an input of its own only where the message is not stored.
const START = `
  WITH given AS (SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[]) AS given (message, turn, starts_max, input)),
    started AS (
      UPDATE inbox SET state = 'running', attempts = attempts + (NOT ${waitsForPerson('inbox.turn_id')})::int, next_at = NULL,
        turn_id = coalesce(turn_id, given.turn)
      FROM given WHERE number = given.message AND ${isOpen()}
        AND (attempts < given.starts_max OR ${waitsForPerson('inbox.turn_id')})
      RETURNING number, shard, channel, account, session, received_at, turn_id, attempts, draft, trace, replayed_at, approval_run_id,
        approval_step_id, message_json, CASE WHEN message_json IS NULL THEN given.input END AS input),
    -- The row of the message is locked, so that nobody else stores its turn meanwhile.
    again AS (
      UPDATE turns SET status = 'running', attempts = started.attempts, starts = turns.starts + 1
      FROM started WHERE turns.id = started.turn_id AND turns.ended_at IS NULL RETURNING turns.id, checkpoint_json),
    first AS (
      INSERT INTO turns (id, shard, agent, session_id, owner, source, status, input, attempts, created_at, inbox, starts)
      SELECT turn_id, shard, coalesce(substring(session FROM '^agent:([a-z0-9-]{1,32})/'), 'main'), session, 'channel:' || channel,
        channel, 'running', input, attempts, received_at, number, 1 FROM started
      WHERE NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = started.turn_id))
  SELECT started.*, again.checkpoint_json FROM started LEFT JOIN again ON again.id = started.turn_id`
/** What `START` returned, for a commit whose answer was lost. */
export const STARTED = `
  SELECT number, inbox.shard, channel, account, inbox.session, received_at, turn_id, inbox.attempts, draft, trace, replayed_at, approval_run_id,
    approval_step_id, message_json, checkpoint_json
  FROM inbox LEFT JOIN turns ON turns.id = turn_id WHERE number = ANY ($1::bigint[]) AND ${isOpen('inbox.ended_at')} AND state = 'running'`
const SPENT = 'SELECT channel, account, turn_id AS "turnId", attempts, draft FROM inbox WHERE number = $1 AND ended_at IS NULL'
const endMessage = (error: string): string => `
  UPDATE inbox SET state = 'done', next_at = NULL, ended_at = $2, error = ${error} WHERE number = $1 AND ended_at IS NULL`
export const END_MESSAGE = endMessage('NULL')
/**
 * Ends a message (parameter 1) without running it at a time (parameter 2), and aborts the turn it may have started. `error` is the SQL of the
 * error. For a `WITH` clause.
 */
export const endedWithoutTurn = (error: string): string => `
  ended AS (${endMessage(error)} RETURNING number, turn_id),
  aborted AS (
    UPDATE turns SET status = 'aborted', ended_at = $2, checkpoint_json = NULL FROM ended
    WHERE turns.id = ended.turn_id AND turns.ended_at IS NULL)`

interface Start {
  readonly number: number
  readonly turnId: string
  readonly startsMax: number
  /** Used unless the row has a message. */
  readonly given: Inbound | undefined
}

interface StartedRow {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly session: string
  readonly received_at: number
  readonly attempts: number
  readonly turn_id: string
  readonly message_json: string | null
  readonly draft: string | null
  readonly trace: string | null
  readonly replayed_at: number | null
  readonly approval_run_id: string | null
  readonly approval_step_id: string | null
  readonly checkpoint_json: string | null
}

const START_KIND: Kind<Start, StartedRow | undefined> = {
  keys: ({ number, turnId }) => [`message ${number}`, `turn ${turnId}`],
  statements: (starts) => [
    sql(
      START,
      ...columnsOf(
        starts,
        ({ number }) => number,
        ({ turnId }) => turnId,
        ({ startsMax }) => startsMax,
        ({ given }) => (given ? wordsOf(given) : null),
      ),
    ),
  ],
  results(starts, [rows = []]) {
    const started = new Map((rows as unknown as StartedRow[]).map((row) => [row.number, row]))
    return starts.map(({ number }) => started.get(number))
  },
  readAgain: (starts) => [
    sql(
      STARTED,
      starts.map(({ number }) => number),
    ),
  ],
}

/** Returns the function that starts an attempt, or reports a message that has used up its attempts. */
export function createStart(db: Database): InboxStore['start'] {
  return async (number, turnId, startsMax, given) => {
    const row = await db.writer.add(START_KIND, { number, turnId, startsMax, given })
    if (!row) {
      const spent = await db.get<Omit<SpentMessage, 'spent' | 'number'>>(SPENT, number)
      return spent && { spent: true, number, ...spent }
    }
    const message: Inbound | undefined = row.message_json === null ? given : JSON.parse(row.message_json)
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
      checkpoint: JSON.parse(row.checkpoint_json ?? '[]'),
      draft: row.draft,
      ...(row.trace !== null && { trace: row.trace }),
    }
  }
}

const approvalOf = ({ approval_run_id: runId, approval_step_id: stepId }: StartedRow): Pick<StartedMessage, 'approval'> =>
  runId === null || stepId === null ? {} : { approval: { runId, stepId } }
