/** An inbox message, as a row of its table and as callers see it. */
import type { InboxRow, InboxState, MessageKind, SessionMessage } from '@sluice/sdk'
import type { TableDescription } from './delivery-table.ts'

export interface InboxColumns {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly message_id: string
  readonly sender: string
  readonly session: string
  readonly state: InboxState
  readonly attempts: number
  readonly received_at: number
  readonly replayed_at: number | null
  readonly next_at: number | null
  readonly ended_at: number | null
  readonly turn_id: string | null
  readonly error: string | null
  readonly kind: MessageKind | null
}

const COLUMNS =
  'number, channel, account, message_id, sender, session, state, attempts, received_at, next_at, ended_at, turn_id, error, kind, replayed_at'

export const INBOX_TABLE: TableDescription = {
  name: 'inbox',
  columns: COLUMNS,
  final: 'done',
  states: ['pending', 'running', 'done', 'dead', 'limited', 'discarded'],
  counted: ['pending', 'running', 'dead'],
  waiting: ['pending', 'running'],
}

export const toInboxRow = (row: InboxColumns): InboxRow => ({
  number: row.number,
  channel: row.channel,
  account: row.account,
  messageId: row.message_id,
  sender: row.sender,
  session: row.session,
  state: row.state,
  attempts: row.attempts,
  receivedAtMs: row.received_at,
  nextAtMs: row.next_at,
  endedAtMs: row.ended_at,
  turnId: row.turn_id,
  error: row.error,
})

/** An unfinished message of a session, as a row of its table. */
export interface SessionColumns {
  readonly number: number
  readonly sender: string
  readonly state: 'pending' | 'running'
  readonly kind: MessageKind | null
  readonly verdict: string
  readonly turnId: string | null
  readonly receivedAtMs: number
}

export const toSessionMessage = ({ state, kind, ...row }: SessionColumns): SessionMessage => ({
  ...row,
  ...(kind !== null && { kind }),
  isRunning: state === 'running',
})
