/** Begins an attempt at a message: counted, and its turn in the books, before anything of it runs (§4.2). */
import type { InboxStore, SpentMessage, StartedMessage } from '@sluice/sdk'
import type { Database } from './database.ts'
import type { GroupCommit } from './group-commit.ts'
import type { InboxColumns } from './inbox-row.ts'
import { waitsForPerson } from './waits-for-person.ts'

const MESSAGE = 'SELECT message_json FROM inbox WHERE number = ? AND ended_at IS NULL'
const START = `
  UPDATE inbox SET
    state = 'running', attempts = attempts + NOT ${waitsForPerson('inbox.turn_id')}, next_at = NULL, turn_id = coalesce(turn_id, ?)
  WHERE number = ? AND ended_at IS NULL AND (attempts < ? OR ${waitsForPerson('inbox.turn_id')})
  RETURNING channel, account, session, received_at, turn_id, attempts, draft, trace, replayed_at, approval_run_id, approval_step_id`
const SPENT = 'SELECT channel, attempts FROM inbox WHERE number = ? AND ended_at IS NULL'
const START_TURN = `
  INSERT INTO turns (id, session_id, owner, source, status, input, attempts, created_at, inbox, starts)
  VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, 1)
  ON CONFLICT DO UPDATE SET status = 'running', attempts = excluded.attempts, starts = starts + 1 WHERE ended_at IS NULL
  RETURNING checkpoint_json`

interface StartedColumns extends Pick<InboxColumns, 'channel' | 'account' | 'session' | 'received_at' | 'attempts'> {
  readonly turn_id: string
  readonly draft: string | null
  readonly trace: string | null
  readonly replayed_at: number | null
  readonly approval_run_id: string | null
  readonly approval_step_id: string | null
}

type Spent = Pick<SpentMessage, 'channel' | 'attempts'>

export function createStart(db: Database, writer: GroupCommit): InboxStore['start'] {
  return async (number, turnId, startsMax) => {
    const kept = db.read(() => db.get<{ message_json: string }>(MESSAGE, number))
    if (!kept) return undefined
    const message: StartedMessage['message'] = JSON.parse(kept.message_json)
    const { row, checkpoint, spent } = await writer.write(starting(db, { number, turnId, startsMax, text: message.text }))
    if (!row) return spent && { spent: true, number, ...spent }
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
  readonly text: string
}

interface Outcome {
  readonly row?: StartedColumns
  readonly checkpoint?: string | null | undefined
  /** Without a row: why there is none, unless the message has ended. */
  readonly spent?: Spent | undefined
}

/** The unit that counts the attempt and puts its turn in the books. */
function starting(db: Database, { number, turnId, startsMax, text }: Start): () => Outcome {
  return () => {
    const row = db.get<StartedColumns>(START, turnId, number, startsMax)
    if (!row) return { spent: db.get<Spent>(SPENT, number) }
    const turn = [row.turn_id, row.session, `channel:${row.channel}`, row.channel, text, row.attempts, row.received_at, number]
    return { row, checkpoint: db.get<{ checkpoint_json: string | null }>(START_TURN, ...turn)?.checkpoint_json }
  }
}
