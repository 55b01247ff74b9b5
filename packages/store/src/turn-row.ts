/** A turn as it lies in the table and as callers see it. */
import type { TurnRow, TurnStatus } from '@sluice/sdk'

export interface TurnColumns {
  readonly id: string
  readonly session_id: string | null
  readonly source: string
  readonly status: TurnStatus
  readonly input: string
  readonly response: string | null
  readonly model: string | null
  readonly error_json: string | null
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost_usd: number
  readonly attempts: number
  readonly created_at: number
  readonly ended_at: number | null
  readonly context_json: string | null
}

export const COLUMNS =
  'id, session_id, source, status, input, response, model, error_json, input_tokens, output_tokens, cost_usd, attempts, created_at, ended_at, context_json'

export const toTurn = (row: TurnColumns): TurnRow => ({
  id: row.id,
  sessionId: row.session_id,
  source: row.source,
  status: row.status,
  input: row.input,
  response: row.response,
  model: row.model,
  error: JSON.parse(row.error_json ?? 'null'),
  inputTokens: row.input_tokens,
  outputTokens: row.output_tokens,
  costUsd: row.cost_usd,
  attempts: row.attempts,
  createdAtMs: row.created_at,
  endedAtMs: row.ended_at,
  context: JSON.parse(row.context_json ?? 'null'),
})
