/** A turn as it lies in the table and as callers see it. */
import type { ModelMessage, TurnRow, TurnStatus } from '@sluice/sdk'
import { inputIn, responseIn } from './turn-texts.ts'

export interface TurnColumns {
  readonly id: string
  readonly session_id: string | null
  readonly owner: string | null
  readonly source: string
  readonly status: TurnStatus
  readonly input: string | null
  readonly response: string | null
  readonly model: string | null
  readonly error_json: string | null
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost_usd: number
  readonly attempts: number
  readonly starts: number
  readonly created_at: number
  readonly ended_at: number | null
  readonly context_json: string | null
  /** Of the turn, where its session still has them. */
  readonly messages_json: string | null
}

/** Of `turns AS turn`. */
export const COLUMNS =
  'id, session_id, owner, source, status, input, response, model, error_json, input_tokens, output_tokens, cost_usd, attempts, starts, created_at, ended_at, context_json, (SELECT messages_json FROM messages WHERE messages.session = turn.session AND messages.up_to = turn.up_to) AS messages_json'

export function toTurn(row: TurnColumns): TurnRow {
  const messages: ModelMessage[] = JSON.parse(row.messages_json ?? '[]')
  return {
    id: row.id,
    sessionId: row.session_id,
    owner: row.owner,
    source: row.source,
    status: row.status,
    input: row.input ?? inputIn(messages) ?? '',
    response: row.response ?? responseIn(messages) ?? null,
    model: row.model,
    error: JSON.parse(row.error_json ?? 'null'),
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    costUsd: row.cost_usd,
    attempts: row.attempts,
    starts: row.starts,
    createdAtMs: row.created_at,
    endedAtMs: row.ended_at,
    context: JSON.parse(row.context_json ?? 'null'),
  }
}
