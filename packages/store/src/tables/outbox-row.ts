/** An outbox message, as a row of its table and as callers see it. */
import type { NewReply, OutboxRow, OutboxState, StartedReply } from '@sluice/sdk'
import type { TableDescription } from './delivery-table.ts'

export interface OutboxColumns {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly to_json: string
  readonly text: string
  readonly part: number
  readonly parts: number
  readonly client_id: string
  readonly inbox: number | null
  readonly turn_id: string | null
  readonly state: OutboxState
  readonly attempts: number
  readonly created_at: number
  readonly next_at: number | null
  readonly ended_at: number | null
  readonly provider_id: string | null
  readonly error: string | null
  readonly extras_json: string | null
  readonly trace: string | null
  readonly replayed_at: number | null
  /** Truthy if it was sent again although it may have arrived. */
  readonly repeated: unknown
}

export interface StartedColumns extends OutboxColumns {
  /** Truthy for a prompt of a pending approval. */
  readonly asks: unknown
}

/** SQL of whether a row of the outbox is a prompt of a pending approval. */
export const ASKS = `EXISTS (
  SELECT 1 FROM approval_prompts JOIN approvals ON approvals.number = approval_prompts.approval
  WHERE approval_prompts.outbox = outbox.number AND approvals.state = 'pending')`

export const OUTBOX_COLUMNS =
  'number, channel, account, to_json, text, part, parts, client_id, inbox, turn_id, state, attempts, created_at, next_at, ended_at, provider_id, error, extras_json, trace, replayed_at, repeated'

export const OUTBOX_TABLE: TableDescription = {
  name: 'outbox',
  columns: OUTBOX_COLUMNS,
  final: 'sent',
  states: ['queued', 'sending', 'failed', 'sent', 'ambiguous', 'dead', 'discarded'],
  counted: ['queued', 'sending', 'failed', 'ambiguous', 'dead'],
  waiting: ['queued', 'failed'],
}

const toNumberedReply = (row: OutboxColumns): NewReply & { readonly number: number } => ({
  number: row.number,
  channel: row.channel,
  account: row.account,
  to: JSON.parse(row.to_json),
  text: row.text,
  part: row.part,
  parts: row.parts,
  clientId: row.client_id,
  turnId: row.turn_id,
  createdAtMs: row.created_at,
})

export const toOutboxRow = (row: OutboxColumns): OutboxRow => ({
  ...toNumberedReply(row),
  // A message without text and extras has been erased, because an empty message is never queued.
  text: row.text === '' && row.extras_json === null ? null : row.text,
  state: row.state,
  attempts: row.attempts,
  nextAtMs: row.next_at,
  endedAtMs: row.ended_at,
  providerId: row.provider_id,
  repeated: Boolean(row.repeated),
  error: row.error,
  inbox: row.inbox,
})

export const toStartedReply = (row: StartedColumns): StartedReply => ({
  ...toNumberedReply(row),
  sinceMs: row.replayed_at ?? row.created_at,
  attempts: row.attempts,
  ...(row.asks ? { asks: true as const } : {}),
  ...(row.extras_json !== null && { extras: JSON.parse(row.extras_json) }),
  ...(row.trace !== null && { trace: row.trace }),
})
